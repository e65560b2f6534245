"""Direct connections to providers, reused by later requests: HTTP/1.1 by h11.

The pool of httpx's own transport also serves HTTP/2 and limits connections, and its locks yield to the event loop
several times for each request: ``docs/libraries.md`` has the figures. Here, the number of connections is unlimited,
because a hundred sessions may stream at once, and waiting for a connection would look like a slow model.
"""

from __future__ import annotations

import ssl
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Final, TypeAlias, cast

import h11

from jumpseat.adapters.transport.chunked import ChunkedDecoder
from jumpseat.adapters.transport.errors import LocalProtocolError, RemoteProtocolError
from jumpseat.adapters.transport.messages import Headers, Limits, Request, Response
from jumpseat.adapters.transport.socket_stream import SocketStream
from jumpseat.adapters.transport.url import DEFAULT_PORTS

REUSE_S: Final = 60.0
"""The time in seconds that a connection is kept for the next request."""
MOST_KEPT: Final = 100
"""Limit on the connections of one origin that are kept."""
LARGEST_HEAD: Final = 100 * 1024
"""Limit on the bytes of the head of a response."""
MOST_INFORMATIONAL: Final = 100
"""Limit of the responses with a status below 200 in front of one response."""

_SENT_TOGETHER: Final = 64 * 1024
"""Limit on the bytes of a head and of parts of a body that are copied to be sent together."""

Origin: TypeAlias = tuple[str, str, int | None]
"""The scheme, host and port of a URL."""


class DirectConnections:
    """The connections to all origins, each with one request at a time; ``tls`` is for those with https."""

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        if tls is not None:
            tls.set_alpn_protocols(["http/1.1"])
        self._tls = tls
        self._idle: dict[Origin, list[_Connection]] = {}
        self._closed = False

    async def send(self, request: Request) -> Response:
        url, limits = request.url, request.limits
        origin: Origin = (url.scheme, url.host, url.port)
        connection = self._kept(origin) or await self._connect(origin, limits["connect"])
        try:
            head = await connection.request(request)
        except BaseException:
            connection.close()
            raise
        return Response(head.status_code, Headers.decode(head.headers), _Body(connection, limits, self, origin))

    async def aclose(self) -> None:
        self._closed = True
        idle, self._idle = self._idle, {}
        for connections in idle.values():
            for connection in connections:
                connection.close()

    def release(self, origin: Origin, connection: _Connection) -> None:
        """Keep a connection for the next request, or close it if it cannot have one."""
        kept = self._idle.setdefault(origin, [])
        if self._closed or len(kept) >= MOST_KEPT or not connection.renew():
            connection.close()
        else:
            kept.append(connection)

    def _kept(self, origin: Origin) -> _Connection | None:
        """Return the connection of an earlier request that was used last; close those that have expired."""
        kept = self._idle.get(origin)
        while kept:
            connection = kept.pop()
            if connection.usable:
                return connection
            connection.close()
        return None

    async def _connect(self, origin: Origin, limit: float | None) -> _Connection:
        scheme, host, port = origin
        stream = await SocketStream.connect(host, port or DEFAULT_PORTS[scheme], limit)
        if scheme == "https":
            assert self._tls is not None, "TLS is configured before the first https request"
            await stream.start_tls(self._tls, host, limit)
        return _Connection(stream)


class _Connection:
    """A connection with one request at a time."""

    def __init__(self, stream: SocketStream) -> None:
        self._stream = stream
        self._http = _client()
        # The body of a response in chunks, which h11 is spared.
        self._chunks: ChunkedDecoder | None = None
        self._early = b""
        self._kept_until = 0.0

    async def request(self, request: Request) -> h11.Response:
        """Send a request and return the head of its response.

        Raises:
            TransportError: the connection broke, or a limit was exceeded.
        """
        limits = request.limits
        with _protocol():
            data = self._send(h11.Request(method=request.method, target=request.url.target, headers=request.fields))
            for piece in _joined(request.parts):
                if len(data) + len(piece) > _SENT_TOGETHER:
                    await self._stream.send(data, limits["write"])
                    data = b""
                data += self._send(h11.Data(data=piece))
            data += self._send(h11.EndOfMessage())
        await self._stream.send(data, limits["write"])
        # In front of the response may be others, such as 100 Continue.
        for _ in range(MOST_INFORMATIONAL):
            if isinstance(event := await self._next_event(limits), h11.Response):
                break
        else:
            raise RemoteProtocolError("the server sent too many informational responses")
        if request.method != "HEAD" and (b"transfer-encoding", b"chunked") in event.headers:
            self._chunks, self._early = ChunkedDecoder(), self._http.trailing_data[0]
        return event

    async def piece(self, limits: Limits) -> bytes | None:
        """Return the next piece of the response's body; ``None`` at the end.

        Raises:
            TransportError: the connection broke, or a limit was exceeded.
        """
        if self._chunks is not None:
            return await self._next_chunks(self._chunks, limits)
        event = await self._next_event(limits)
        return bytes(event.data) if isinstance(event, h11.Data) else None

    async def _next_chunks(self, chunks: ChunkedDecoder, limits: Limits) -> bytes | None:
        # What came together with the head.
        data, self._early = self._early, b""
        while not chunks.ended:
            data = data or await self._stream.read(limits["read"])
            if not data:
                raise RemoteProtocolError(
                    "peer closed connection without sending complete message body (incomplete chunked read)"
                )
            if content := chunks.feed(data):
                return content
            data = b""
        return None

    def renew(self) -> bool:
        """Make the connection ready for its next request; return whether it can have one."""
        http, chunks = self._http, self._chunks
        # The state is another one if either side wants to close the connection.
        if http.our_state is not h11.DONE:
            return False
        if chunks is not None:
            if not chunks.ended or chunks.rest:
                return False
            self._http, self._chunks = _client(), None
        elif http.their_state is h11.DONE and not http.trailing_data[0]:
            http.start_next_cycle()
        else:
            return False
        self._kept_until = monotonic() + REUSE_S
        return True

    @property
    def usable(self) -> bool:
        """Return whether the connection has neither expired nor been closed by the provider."""
        return monotonic() < self._kept_until and self._stream.is_silent

    def close(self) -> None:
        """Close the connection at once."""
        self._stream.close()

    def _send(self, event: h11.Event) -> bytes:
        return self._http.send(event) or b""

    async def _next_event(self, limits: Limits) -> h11.Event | type[h11.PAUSED]:
        with _protocol():
            while (event := self._http.next_event()) is h11.NEED_DATA:
                data = await self._stream.read(limits["read"])
                if not data and self._http.their_state is h11.SEND_RESPONSE:
                    raise RemoteProtocolError("the server disconnected without a response")
                self._http.receive_data(data)
        return cast("h11.Event | type[h11.PAUSED]", event)


class _Body:
    """The body of a response. Closing it releases the connection."""

    def __init__(
        self, connection: _Connection, limits: Limits, connections: DirectConnections, origin: Origin
    ) -> None:
        self._connection = connection
        self._limits = limits
        self._connections = connections
        self._origin = origin
        self._released = False

    def __aiter__(self) -> _Body:
        return self

    async def __anext__(self) -> bytes:
        if (piece := await self._connection.piece(self._limits)) is None:
            raise StopAsyncIteration
        return piece

    async def aclose(self) -> None:
        if not self._released:
            self._released = True
            self._connections.release(self._origin, self._connection)


def _joined(parts: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the bytes of ``parts`` in fewer pieces, of which only small ones are copies."""
    waiting: list[bytes] = []
    size = 0
    for part in parts:
        if waiting and size + len(part) > _SENT_TOGETHER:
            yield b"".join(waiting)
            waiting, size = [], 0
        waiting.append(part)
        size += len(part)
    if size:
        yield b"".join(waiting)


def _client() -> h11.Connection:
    return h11.Connection(h11.CLIENT, max_incomplete_event_size=LARGEST_HEAD)


@contextmanager
def _protocol() -> Generator[None]:
    try:
        yield
    except h11.LocalProtocolError as error:
        raise LocalProtocolError(str(error)) from error
    except h11.RemoteProtocolError as error:
        raise RemoteProtocolError(str(error)) from error
