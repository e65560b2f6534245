"""Transport to servers at a URL: streamable HTTP, and the older HTTP with server-sent events."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, Final

import anyio
import certifi
import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import INVALID_PARAMS, METHOD_NOT_FOUND, JSONRPCError, jsonrpc_message_adapter
from mcp.types.version import LATEST_HANDSHAKE_VERSION
from pydantic import ValidationError

from jumpseat.mcp.stdio import MAX_LINE_BYTES, ServerFailedError, Streams
from jumpseat.parsing.decompression import ACCEPT_ENCODING, DecompressionError, decompress
from jumpseat.parsing.json_text import SurrogateRepair
from jumpseat_protocol.mcp_servers import McpServerConfig

CONNECT_S: Final = 30.0
READ_S: Final = 300.0
"""Time after which a silent event stream is reopened."""

END_S: Final = 1.0
"""Time-out of the request that ends a session."""

SESSION_LOST: Final = -32_733
"""Code of the error that replaces the response of a server that has lost the session; no server sends it."""

_SESSION: Final = "mcp-session-id"
_VERSION: Final = "mcp-protocol-version"
_METHOD: Final = "mcp-method"
_OPTIONAL: Final = frozenset({"server/discover", "subscriptions/listen"})
"""Methods whose failure does not end the connection: an older server may answer them with any status."""


@asynccontextmanager
async def http_streams(
    config: McpServerConfig, auth: httpx2.Auth, tls: ssl.SSLContext | None = None
) -> AsyncGenerator[Streams, None]:
    """Connect to the server at ``config.url``; failures are raised as errors of httpx2, or ``ServerFailedError``.

    ``tls`` replaces the context of :func:`tls_context`.
    """
    url, headers = config.url or "", config.headers or {}
    if config.transport == "sse":

        def client(
            headers: dict[str, str] | None = None,
            timeout: httpx2.Timeout | None = None,
            auth: httpx2.Auth | None = None,
        ) -> httpx2.AsyncClient:
            return _client(headers or {}, auth, tls, end_if_refused)

        async def end_if_refused(response: httpx2.Response) -> None:
            # The package would leave the message, and all later ones, without a response.
            status = response.status_code
            if response.request.method == "POST" and status >= 400 and status not in (401, 403):
                refused.append(status)
                limit.cancel()

        refused: list[int] = []
        with anyio.move_on_after(CONNECT_S) as limit:
            async with sse_client(url, headers, httpx_client_factory=client, auth=auth) as streams:
                limit.deadline = float("inf")
                yield streams
        if refused:
            raise ServerFailedError(f"the server responded with status {refused[0]} to a message")
        if limit.cancelled_caught:
            raise ServerFailedError("the server sent no address for messages")
        return
    session = _ServerSession()
    async with _client(headers, auth, tls, session.watch) as http_client:
        try:
            async with streamable_http_client(
                url, http_client=http_client, terminate_on_close=False, max_sse_event_size=MAX_LINE_BYTES
            ) as streams:
                yield streams
        finally:
            # The package gives up if its task is cancelled, which is how connections end.
            if session.headers is not None:
                with anyio.move_on_after(END_S, shield=True), suppress(httpx2.HTTPError):
                    await http_client.delete(url, headers=session.headers)


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


def _client(
    headers: dict[str, str],
    auth: httpx2.Auth | None,
    tls: ssl.SSLContext | None,
    watch: Callable[[httpx2.Response], Awaitable[None]],
) -> httpx2.AsyncClient:
    client = httpx2.AsyncClient(
        headers=headers,
        auth=_StatusErrors(auth or httpx2.Auth()),
        verify=tls or tls_context(),
        timeout=httpx2.Timeout(CONNECT_S, read=READ_S),
        event_hooks={"response": [limit_response, watch]},
    )
    client.headers.setdefault("User-Agent", "jumpseat")
    client.headers["Accept-Encoding"] = ACCEPT_ENCODING
    return client


_NO_SESSION: Final = re.compile(
    r"session\b.{0,40}\b(not found|not exist|invalid|unknown|missing|required|expired|terminated|closed)"
    r"|\b(no|invalid|unknown|missing|expired|could not find)\b.{0,40}\bsession|not initialized",
    re.IGNORECASE | re.DOTALL,
)
"""The texts by which servers say with other statuses than 404 that they do not have a session."""


class _ServerSession:
    """The session that a server has given; ``headers`` name it in requests, ``None`` if there is none (any more).

    The response of a server that has lost the session becomes a JSON-RPC error with the code ``SESSION_LOST``.
    Servers do so in many forms, after restarts above all.
    """

    def __init__(self) -> None:
        self.headers: dict[str, str] | None = None

    async def watch(self, response: httpx2.Response) -> None:
        """Note the session of a response: a hook of a client, after :func:`limit_response`."""
        sent = response.request.headers
        if _SESSION in sent:
            self.headers = {name: sent[name] for name in (_SESSION, _VERSION) if name in sent}
            if response.request.method == "POST" and await _is_lost(response):
                self.headers = None
        elif _SESSION in response.headers:
            self.headers = {_SESSION: response.headers[_SESSION]}


async def _is_lost(response: httpx2.Response) -> bool:
    """Return whether the server has lost the session of a request; the response becomes an error that says so."""
    if response.status_code not in (400, 401, 404, 410) or "www-authenticate" in response.headers:
        return False
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    body = b"".join([chunk async for chunk in response.stream])
    error = _json_rpc_error(body)
    text = body.decode(errors="replace") if error is None else error.error.message
    lost = response.status_code in (404, 410) or _NO_SESSION.search(text[:1000]) is not None
    # An error about the request itself: the server has a session to refuse it in.
    if error is not None and error.error.code in (METHOD_NOT_FOUND, INVALID_PARAMS):
        lost = False
    if lost:
        response.status_code = 404
        response.headers["content-type"] = "application/json"
        body = b'{"jsonrpc": "2.0", "id": null, "error": {"code": %d, "message": "session lost"}}' % SESSION_LOST
    response.stream = httpx2.ByteStream(body)
    return lost


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
    # After the handshake, 404 is about the method or the session, for which the transport has errors.
    sent = response.request.headers
    is_known = response.status_code == 404 and (_METHOD in sent or _SESSION in sent)
    return is_known or sent.get(_METHOD) in _OPTIONAL or await _is_json_rpc_error(response)


async def _is_json_rpc_error(response: httpx2.Response) -> bool:
    is_json = response.headers.get("content-type", "").lower().startswith("application/json")
    return is_json and _json_rpc_error(await response.aread()) is not None


def _json_rpc_error(body: bytes) -> JSONRPCError | None:
    try:
        message = jsonrpc_message_adapter.validate_json(body, by_name=False)
    except ValidationError:
        return None
    return message if isinstance(message, JSONRPCError) else None


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
