"""Transport to servers at a URL: streamable HTTP, and the older HTTP with server-sent events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import httpx
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from jumpseat.mcp.stdio import MAX_LINE_BYTES, Streams
from jumpseat_protocol.mcp import McpServerConfig

CONNECT_S: Final = 30.0
READ_S: Final = 300.0
"""Time after which a silent event stream is reopened."""


@asynccontextmanager
async def http_streams(config: McpServerConfig, auth: httpx.Auth) -> AsyncGenerator[Streams, None]:
    """Connect to the server at ``config.url``; failures are raised as errors of httpx."""
    url, headers = config.url or "", config.headers or {}
    if config.transport == "sse":

        def client(
            headers: dict[str, str] | None = None,
            timeout: httpx.Timeout | None = None,
            auth: httpx.Auth | None = None,
        ) -> httpx.AsyncClient:
            return _client(headers or {}, auth)

        async with sse_client(url, headers, httpx_client_factory=client, auth=auth) as streams:
            yield streams
        return
    async with (
        _client(headers, auth) as http_client,
        streamable_http_client(url, http_client=http_client) as (incoming, outgoing, _),
    ):
        yield incoming, outgoing


def _client(headers: dict[str, str], auth: httpx.Auth | None) -> httpx.AsyncClient:
    client = httpx.AsyncClient(
        headers=headers,
        auth=auth,
        timeout=httpx.Timeout(CONNECT_S, read=READ_S),
        event_hooks={"response": [_limit]},
    )
    client.headers.setdefault("User-Agent", "jumpseat")
    return client


async def _limit(response: httpx.Response) -> None:
    response.stream = _LimitedStream(response.stream)


class TooLargeError(httpx.ReadError):
    """A message is larger than ``MAX_LINE_BYTES``."""


class _LimitedStream(httpx.AsyncByteStream):
    """A response body that limits the size of each message; a message ends with an empty line or with the body."""

    def __init__(self, inner: httpx.SyncByteStream | httpx.AsyncByteStream) -> None:
        assert isinstance(inner, httpx.AsyncByteStream)
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._inner:
            end = max(chunk.rfind(b"\n\n"), chunk.rfind(b"\n\r\n"))
            size = size + len(chunk) if end < 0 else len(chunk) - end
            if size > MAX_LINE_BYTES:
                raise TooLargeError(f"the server sent a message of more than {MAX_LINE_BYTES // (1024 * 1024)} MiB")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()
