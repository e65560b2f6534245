"""Connections to providers, by httpcore2: the transport of httpx2, without its client and its types.

Loaded by the first request. ``docs/libraries.md`` has the costs of the layers.
"""

from __future__ import annotations

import select
import socket
import ssl
import sys
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, cast

import anyio
import anyio.to_thread
import h11

from jumpseat.adapters.adapter import Network
from jumpseat.adapters.transport.library import httpcore2
from jumpseat.adapters.transport.messages import CLOSE_S, Headers, Request, Response
from jumpseat.adapters.transport.network import Proxies, tls_context
from jumpseat.adapters.transport.url import InvalidURL, Url, parse_url

REUSE_S: Final = 60.0
"""The time in seconds that a connection is kept for the next request."""
MOST_KEPT: Final = 100
"""Limit on the connections of one pool that are kept."""

_WRITTEN_AT_ONCE: Final = 64 * 1024
"""The bytes of a body that are written together. What the system does not take of them is copied."""


class Connections:
    """The route to providers over the network: a pool of connections for each proxy, with TLS and without.

    The number of connections is unlimited, because a hundred sessions may stream at once, and waiting for a
    connection would look like a slow model. Certificates are loaded for the first https URL only: loading takes
    20 ms and some memory, which users of local models are spared.
    """

    def __init__(self, network: Network | None = None) -> None:
        self._network = network or Network()
        self._proxies = Proxies.from_environment()
        self._tls: ssl.SSLContext | None = None
        self._pools: dict[tuple[str | None, bool], httpcore2.AsyncConnectionPool] = {}

    async def send(self, request: Request) -> Response:
        """Send a request; see :meth:`jumpseat.adapters.transport.messages.Route.send`.

        A ``ConnectError`` or ``ConnectTimeout`` of a proxy has the attribute ``proxy``, its URL.
        """
        url = request.url
        if url.scheme not in ("http", "https") or not url.host:
            raise httpcore2.UnsupportedProtocol("expected an http or https URL")
        proxy = self._network.proxy or self._proxies.for_url(url)
        pool = await self._pool(proxy, secure=url.scheme == "https" or (proxy or "").startswith("https:"))
        try:
            response = await pool.handle_async_request(
                httpcore2.Request(
                    request.method,
                    _library_url(url),
                    headers=request.fields,
                    content=_Parts(request.parts),
                    extensions={"timeout": request.limits},
                )
            )
        except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
            vars(error)["proxy"] = proxy
            raise
        return Response(response.status, Headers.decode(response.headers), _Body(response))

    async def aclose(self) -> None:
        pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            await pool.aclose()

    async def _pool(self, proxy: str | None, *, secure: bool) -> httpcore2.AsyncConnectionPool:
        if secure and self._tls is None:
            # In a thread: all sessions would wait for it.
            tls = await anyio.to_thread.run_sync(tls_context, self._network)
            self._tls = self._tls or tls
        if (proxy, secure) not in self._pools:
            # A pool without TLS never verifies a certificate, but would load the system's without a context.
            tls = (self._tls if secure else None) or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            self._pools[proxy, secure] = httpcore2.AsyncConnectionPool(
                ssl_context=tls,
                proxy=_parse_proxy(proxy, tls) if proxy else None,
                max_connections=None,
                max_keepalive_connections=MOST_KEPT,
                keepalive_expiry=REUSE_S,
                network_backend=_Backend(),
            )
        return self._pools[proxy, secure]


class _Parts:
    """The body of a request, in pieces of which only small ones are copies."""

    def __init__(self, parts: Sequence[bytes]) -> None:
        self._parts = parts

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        small: list[bytes] = []
        size = 0
        for part in self._parts:
            if size + len(part) > _WRITTEN_AT_ONCE:
                yield b"".join(small)
                small, size = [], 0
            if len(part) > _WRITTEN_AT_ONCE:
                for start in range(0, len(part), _WRITTEN_AT_ONCE):
                    yield part[start : start + _WRITTEN_AT_ONCE]
            else:
                small.append(part)
                size += len(part)
        yield b"".join(small)


class _Body:
    """The body of a response. Closing it releases the connection.

    A step of httpcore2's stream returns one chunk of HTTP, often one word of an answer. Here, it returns all chunks
    that have been received: a server takes 0.7 of the time for deltas that arrive together.
    """

    def __init__(self, response: httpcore2.Response) -> None:
        self._response = response
        self._chunks = cast("AsyncGenerator[bytes]", aiter(cast("AsyncIterable[bytes]", response.stream)))
        # What the library has received and not returned is known to its connection alone.
        self._received: h11.Connection = cast("Any", response.stream)._stream._connection._h11_state
        self._failure: str | None = None
        self._ended = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._failure is not None:
            raise httpcore2.RemoteProtocolError(self._failure)
        if self._ended:
            raise StopAsyncIteration
        chunks = [await anext(self._chunks)]
        try:
            while isinstance(event := self._received.next_event(), h11.Data):
                chunks.append(event.data)
        except h11.RemoteProtocolError as error:
            # What came before is returned first.
            self._failure = str(error)
        else:
            if isinstance(event, h11.EndOfMessage):
                self._ended = True
                await self._chunks.aclose()
        return b"".join(chunks) if len(chunks) > 1 else chunks[0]

    async def aclose(self) -> None:
        with anyio.move_on_after(CLOSE_S, shield=True):
            await self._response.aclose()


class _Backend(httpcore2.AsyncNetworkBackend):
    """Connects with streams that :class:`_Stream` describes."""

    def __init__(self) -> None:
        self._backend = cast("httpcore2.AsyncNetworkBackend", httpcore2.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        return _Stream(await self._backend.connect_tcp(host, port, timeout, local_address, socket_options))


class _Stream(httpcore2.AsyncNetworkStream):
    """The bytes of a connection: small writes are joined, and a cancelled TLS handshake closes the connection.

    httpcore2 would leave that connection open.
    """

    def __init__(self, stream: httpcore2.AsyncNetworkStream) -> None:
        self._stream = stream
        self._unsent = b""
        self._write_timeout: float | None = None
        self._socket = cast("socket.socket", stream.get_extra_info("socket"))
        self.aclose = stream.aclose

    def get_extra_info(self, info: str) -> Any:
        # The pool asks this of every connection that it keeps, twice for each request. The stream would search its
        # attributes for the socket each time.
        return _is_readable(self._socket) if info == "is_readable" else self._stream.get_extra_info(info)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        # The head of a request waits for its body: the provider wakes up once for both.
        self._unsent += buffer
        self._write_timeout = timeout
        if len(self._unsent) >= _WRITTEN_AT_ONCE:
            await self._flush()

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        # As in httpcore2: a provider may have refused the request and hung up before it took all of it.
        if self._unsent:
            with suppress(httpcore2.WriteError):
                await self._flush()
        return await self._stream.read(max_bytes, timeout)

    async def _flush(self) -> None:
        unsent, self._unsent = self._unsent, b""
        await self._stream.write(unsent, self._write_timeout)

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        try:
            return _Stream(await self._stream.start_tls(ssl_context, server_hostname, timeout))
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self._stream.aclose()
            raise


def _is_readable(connected: socket.socket) -> bool:
    """Return whether there are bytes to read, or the connection is closed."""
    descriptor = connected.fileno()
    if descriptor < 0:
        return True
    if sys.platform == "win32":
        return bool(select.select([descriptor], [], [], 0)[0])
    # Unlike `select`, this takes descriptors of any number.
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


def _library_url(url: Url) -> httpcore2.URL:
    return httpcore2.URL(scheme=url.scheme, host=url.host, port=url.port, target=url.target)


def _parse_proxy(text: str, tls: ssl.SSLContext) -> httpcore2.Proxy:
    try:
        url = parse_url(text)
    except InvalidURL:
        url = None
    if url is None or url.scheme not in ("http", "https", "socks5", "socks5h") or not url.host:
        # The URL is left out, because it may contain a password.
        raise OSError("invalid proxy in the environment or the adapter: expected an http, https or socks5 URL")
    return httpcore2.Proxy(
        _library_url(url),
        auth=(url.user.encode(), url.password.encode()) if url.user else None,
        ssl_context=tls if url.scheme == "https" else None,
    )
