"""Transport to servers at a URL: streamable HTTP, and the older HTTP with server-sent events."""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final

import certifi
import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import JSONRPCError, jsonrpc_message_adapter
from mcp.types.version import LATEST_HANDSHAKE_VERSION
from pydantic import ValidationError

from jumpseat.mcp.stdio import MAX_LINE_BYTES, Streams
from jumpseat.parsing.decompression import ACCEPT_ENCODING, DecompressionError, decompress
from jumpseat.parsing.json_text import SurrogateRepair
from jumpseat_protocol.mcp import McpServerConfig

CONNECT_S: Final = 30.0
READ_S: Final = 300.0
"""Time after which a silent event stream is reopened."""

_METHOD: Final = "mcp-method"
_OPTIONAL: Final = frozenset({"server/discover", "subscriptions/listen"})
"""Methods whose failure does not end the connection: an older server may answer them with any status."""


@asynccontextmanager
async def http_streams(
    config: McpServerConfig, auth: httpx2.Auth, tls: ssl.SSLContext | None = None
) -> AsyncGenerator[Streams, None]:
    """Connect to the server at ``config.url``; failures are raised as errors of httpx2.

    ``tls`` replaces the context of :func:`tls_context`.
    """
    url, headers = config.url or "", config.headers or {}
    if config.transport == "sse":

        def client(
            headers: dict[str, str] | None = None,
            timeout: httpx2.Timeout | None = None,
            auth: httpx2.Auth | None = None,
        ) -> httpx2.AsyncClient:
            return _client(headers or {}, auth, tls)

        async with sse_client(url, headers, httpx_client_factory=client, auth=auth) as streams:
            yield streams
        return
    async with (
        _client(headers, auth, tls) as http_client,
        streamable_http_client(url, http_client=http_client, max_sse_event_size=MAX_LINE_BYTES) as streams,
    ):
        yield streams


def initialize_request() -> tuple[dict[str, Any], dict[str, str]]:
    """Return the body and the headers of an ``initialize`` request."""
    body = {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": LATEST_HANDSHAKE_VERSION,
            "capabilities": {},
            "clientInfo": {"name": "jumpseat", "version": "0"},
        },
    }
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": LATEST_HANDSHAKE_VERSION,
        "User-Agent": "jumpseat",
    }
    return body, headers


def tls_context() -> ssl.SSLContext:
    """Return a TLS context with the authorities of ``SSL_CERT_FILE`` or ``SSL_CERT_DIR``, else of ``certifi``.

    By itself, httpx2 would trust the authorities of the system instead.
    """
    if file := os.environ.get("SSL_CERT_FILE"):
        return ssl.create_default_context(cafile=file)
    if folder := os.environ.get("SSL_CERT_DIR"):
        return ssl.create_default_context(capath=folder)
    return ssl.create_default_context(cafile=certifi.where())


def _client(headers: dict[str, str], auth: httpx2.Auth | None, tls: ssl.SSLContext | None) -> httpx2.AsyncClient:
    client = httpx2.AsyncClient(
        headers=headers,
        auth=_StatusErrors(auth or httpx2.Auth()),
        verify=tls or tls_context(),
        timeout=httpx2.Timeout(CONNECT_S, read=READ_S),
        event_hooks=LIMITED,
    )
    client.headers.setdefault("User-Agent", "jumpseat")
    client.headers["Accept-Encoding"] = ACCEPT_ENCODING
    return client


class _StatusErrors(httpx2.Auth):
    """The authentication by ``inner``, which raises for a final response that is an error and no JSON-RPC error.

    The transport would replace the status, which decides about logins, by its own error. A hook for responses
    would see them before ``inner`` does. The streams for messages of servers (``GET``) and the end of a session
    (``DELETE``) tolerate errors.
    """

    def __init__(self, inner: httpx2.Auth) -> None:
        self._inner = inner

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        async with aclosing(self._inner.async_auth_flow(request)) as inner:
            outgoing = await anext(inner)
            while True:
                response = yield outgoing
                try:
                    outgoing = await inner.asend(response)
                except StopAsyncIteration:
                    break
        if request.method == "POST" and response.status_code >= 400 and not await _is_tolerated(response):
            response.raise_for_status()


async def _is_tolerated(response: httpx2.Response) -> bool:
    """Return whether the transport or the client session deals with an error response."""
    if response.status_code in (401, 403):
        return False
    # 404 ends the session of an older revision, for which the transport has an error.
    optional = response.request.headers.get(_METHOD) in _OPTIONAL
    return response.status_code == 404 or optional or await _is_json_rpc_error(response)


async def _is_json_rpc_error(response: httpx2.Response) -> bool:
    if not response.headers.get("content-type", "").lower().startswith("application/json"):
        return False
    try:
        return isinstance(
            jsonrpc_message_adapter.validate_json(await response.aread(), by_name=False), JSONRPCError
        )
    except ValidationError:
        return False


async def limit_response(response: httpx2.Response) -> None:
    """Limit the size of each message in the body of a response, once decompressed: a hook of a client."""
    encoding = response.headers.pop("content-encoding", "identity")
    is_stream = response.headers.get("content-type", "").lower().startswith("text/event-stream")
    response.stream = _LimitedStream(response.stream, encoding, is_stream=is_stream)


LIMITED: Final[dict[str, list[Any]]] = {"response": [limit_response]}
"""The hooks of a client whose responses are limited."""


class TooLargeError(httpx2.ReadError):
    """A message is larger than ``MAX_LINE_BYTES``."""


class _LimitedStream(httpx2.AsyncByteStream):
    """A decompressed response body with a limit on the size of each message, and without lone surrogates.

    The body is one message, or a stream of messages that end with empty lines.
    """

    def __init__(
        self, inner: httpx2.SyncByteStream | httpx2.AsyncByteStream, encoding: str, *, is_stream: bool
    ) -> None:
        assert isinstance(inner, httpx2.AsyncByteStream)
        self._inner = inner
        self._encoding = encoding
        self._is_stream = is_stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, repair = 0, SurrogateRepair()
        try:
            async for chunk in decompress(self._inner, self._encoding):
                end = max(chunk.rfind(b"\n\n"), chunk.rfind(b"\n\r\n")) if self._is_stream else -1
                size = size + len(chunk) if end < 0 else len(chunk) - end
                if size > MAX_LINE_BYTES:
                    limit = MAX_LINE_BYTES // (1024 * 1024)
                    raise TooLargeError(f"the server sent a message of more than {limit} MiB")
                yield repair.feed(chunk)
            yield repair.end()
        except DecompressionError as error:
            raise httpx2.DecodingError(f"cannot decompress a response of the server: {error}") from None

    async def aclose(self) -> None:
        await self._inner.aclose()
