"""Direct connections to providers, reused by later requests.

The parts are httpcore's; its pool is left out, which spends more time on limits and on HTTP/2 than a request takes
here: the number of connections is unlimited, and each has one request at a time.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, TypeAlias, cast

import httpcore
import httpx

from jumpseat.adapters.transport.socket_stream import SocketStream

REUSE_S: Final = 60.0
"""The time in seconds that a connection is kept for the next request."""
MOST_KEPT: Final = 100
"""Limit on the connections of one origin that are kept."""

Limits: TypeAlias = dict[str, float | None]
"""The ``connect``, ``write``, ``read`` and ``pool`` timeouts of one request in seconds, in httpx's form."""

Origin: TypeAlias = tuple[bytes, bytes, int | None]
"""The scheme, host and port of a URL."""


class DirectConnections(httpx.AsyncBaseTransport):
    """The connections to all origins; ``tls`` is for those with https.

    Unlimited: a hundred sessions may stream at once, and waiting for a connection would look like a slow model.
    """

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        if tls is not None:
            tls.set_alpn_protocols(["http/1.1"])
        self._tls = tls
        self._idle: dict[Origin, list[httpcore.AsyncHTTP11Connection]] = {}
        self._closed = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        extensions: dict[str, Any] = request.extensions
        origin: Origin = (url.raw_scheme, url.raw_host, url.port)
        sent = httpcore.Request(
            method=request.method,
            url=httpcore.URL(scheme=origin[0], host=origin[1], port=origin[2], target=url.raw_path),
            headers=request.headers.raw,
            content=cast("AsyncIterator[bytes]", request.stream),
            extensions=extensions,
        )
        try:
            connection, response = await self._send(origin, sent, extensions["timeout"])
        except Exception as error:
            raise _as_httpx(error) from error

        async def release() -> None:
            await response.aclose()
            await self._keep(origin, connection)

        return httpx.Response(
            response.status,
            headers=response.headers,
            stream=_Body(response, release),
            extensions=cast("Any", response).extensions,
        )

    async def _send(
        self, origin: Origin, request: httpcore.Request, limits: Limits
    ) -> tuple[httpcore.AsyncHTTP11Connection, httpcore.Response]:
        while (kept := await self._kept(origin)) is not None:
            try:
                return kept, await kept.handle_async_request(request)
            except httpcore.ConnectionNotAvailable:
                continue
        connection = await self._connect(request.url.origin, limits["connect"])
        return connection, await connection.handle_async_request(request)

    async def aclose(self) -> None:
        self._closed = True
        idle, self._idle = self._idle, {}
        for connections in idle.values():
            for connection in connections:
                await connection.aclose()

    async def _keep(self, origin: Origin, connection: httpcore.AsyncHTTP11Connection) -> None:
        """Keep a connection for the next request, if it can have one."""
        if not connection.is_idle():
            return
        kept = self._idle.setdefault(origin, [])
        if self._closed or len(kept) >= MOST_KEPT:
            await connection.aclose()
        else:
            kept.append(connection)

    async def _kept(self, origin: Origin) -> httpcore.AsyncHTTP11Connection | None:
        """Return the connection of an earlier request that was used last; close those that have expired."""
        kept = self._idle.get(origin)
        while kept:
            connection = kept.pop()
            if not connection.has_expired():
                return connection
            await connection.aclose()
        return None

    async def _connect(self, origin: httpcore.Origin, limit: float | None) -> httpcore.AsyncHTTP11Connection:
        host = origin.host.decode("ascii")
        stream = await SocketStream.connect(host, origin.port, limit)
        if origin.scheme == b"https":
            assert self._tls is not None, "TLS is configured before the first https request"
            await stream.start_tls(self._tls, host, limit)
        return httpcore.AsyncHTTP11Connection(origin, stream, keepalive_expiry=REUSE_S)


class _Body(httpx.AsyncByteStream):
    """The body of a response. Closing it releases its connection, or closes that if the body was not read whole."""

    def __init__(self, response: httpcore.Response, release: Callable[[], Awaitable[None]]) -> None:
        self._response = response
        self._release = release
        self._closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in cast("AsyncIterator[bytes]", self._response.stream):
                yield piece
        except Exception as error:
            raise _as_httpx(error) from error

    async def aclose(self) -> None:
        if not self._closed:
            self._closed = True
            await self._release()


def _as_httpx(error: Exception) -> Exception:
    """Return the exception of httpx with the name of one of httpcore; any other exception itself."""
    if not type(error).__module__.startswith("httpcore"):
        return error
    return cast("type[httpx.TransportError]", getattr(httpx, type(error).__name__))(str(error))
