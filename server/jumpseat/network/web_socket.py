"""WebSocket connections: the JSON-RPC of TCP, one message in each WebSocket message, and the files of the page.

A connection begins with an HTTP request for a file, which is answered and closed, or for a WebSocket. The host and
the origin of both are checked, so that pages of other sites and of other servers on the same machine are refused.
The limits are those of TCP, because a WebSocket is a client of the server only from its first valid request on.

This module is imported only if a server has a WebSocket port.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol, cast
from urllib.parse import parse_qs
from uuid import uuid4

from websockets.datastructures import Headers, MultipleValuesError
from websockets.frames import Frame, Opcode
from websockets.http11 import Request, Response
from websockets.protocol import State
from websockets.server import ServerProtocol

from jumpseat.network.listener import Newcomer, UnknownNewcomer
from jumpseat.network.site import ACP_PATH, CONNECTION_ID, DOORS, EDITOR_ORIGIN, METHODS, RPC_PATH, Answer, Site
from jumpseat.rpc.transport import BUSY_BYTES, Framing, Wire
from jumpseat_protocol.envelope import FramingError

if TYPE_CHECKING:
    from jumpseat.network.http_door import EventStream, HttpAnswer, HttpDoor, HttpRequest

log = logging.getLogger(__name__)

PING_S: Final = 30.0
"""The time between pings, which keep a connection through proxies; a peer that answers none of two is gone."""

# Before the handshake, no message is read.
_NO_MESSAGE_BYTES: Final = 0
_MOST_SILENT_PINGS: Final = 2
_MOST_AT_ONCE: Final = 1000
_BYTES_AT_ONCE: Final = 8192
"""The frames that are handled before others have their turn, and the bytes after which frames are counted."""
# A closing frame with the code 1001, "going away" (RFC 6455, 7.4.1).
_GOING_AWAY: Final = b"\x88\x02\x03\xe9"


WITHOUT: Final = "a missing or wrong token"
_FORBIDDEN: Final = b"Not for this host or origin, or without a token.\n"


def _nothing() -> None:
    """Do nothing: no stream is open."""


class Admit(Protocol):
    """Decides about a connection of one of ``DOORS`` by its token, before the handshake."""

    def __call__(self, path: str, token: str | None, *, has_origin: bool) -> Callable[[Framing], Newcomer] | None:
        """Return the function that creates the client; ``None`` if the token is missing or wrong."""
        ...


def token_of(query: str, authorization: str | None) -> str | None:
    """Return the token in the query of an address (``tkn``), or else in the header ``Authorization: Bearer``."""
    scheme, _, credentials = (authorization or "").partition(" ")
    if scheme.lower() == "bearer" and "tkn=" not in query:
        return credentials.strip() or None
    try:
        found = parse_qs(query, max_num_fields=5).get("tkn")
    except ValueError:
        return None
    return found[0] if found else None


class AdmitHttp(Protocol):
    """Decides about an HTTP request of one of ``DOORS`` by its token."""

    def __call__(self, path: str, token: str | None, *, has_origin: bool) -> HttpDoor | None:
        """Return the door; ``None`` if the token is missing or wrong, or the path has no such requests."""
        ...


class Messages:
    """Passes on separate messages. See :class:`jumpseat.rpc.transport.Decoder`."""

    max_body_bytes: int = _NO_MESSAGE_BYTES

    def feed(self, data: bytes) -> Iterable[bytes | FramingError]:
        yield data


def text_header(body_bytes: int) -> bytes:
    """Return the beginning of a frame that holds a whole text message of a server (RFC 6455, 5.2)."""
    if body_bytes < 126:
        return bytes((0x81, body_bytes))
    if body_bytes < 1 << 16:
        return b"\x81\x7e" + body_bytes.to_bytes(2)
    return b"\x81\x7f" + body_bytes.to_bytes(8)


class WebSocketNewcomer(UnknownNewcomer):
    """The connection of a browser or another WebSocket client. See :class:`jumpseat.network.listener.Newcomer`.

    ``connect`` creates the client of the server behind the connection, after the handshake, and ``admit`` one of
    another protocol, whose token is in the first request. ``ping_s`` is the time between pings in seconds.
    """

    def __init__(
        self,
        site: Site,
        connect: Callable[[Framing], Newcomer],
        peer: str,
        ping_s: float = PING_S,
        admit: Admit | None = None,
        admit_http: AdmitHttp | None = None,
    ) -> None:
        super().__init__()
        self._site = site
        self._connect = connect
        self._admit = admit
        self._admit_http = admit_http
        # What has arrived of a first line that may be one of a request that is no GET.
        self._first: bytes | None = b""
        self._request: HttpRequest | None = None
        self._stream: EventStream | None = None
        self._on_room: Callable[[], None] = _nothing
        self._on_gone: Callable[[], None] = _nothing
        self._peer = peer
        self._protocol = ServerProtocol(max_size=_NO_MESSAGE_BYTES, logger=log.getChild("protocol"))
        # It would log each address, header and frame, in which there are tokens.
        self._protocol.debug = False
        self._messages = Messages()
        self._parts: list[bytes] = []
        self._rest = memoryview(b"")
        self._ping_s = ping_s
        self._next_ping: asyncio.TimerHandle | None = None
        self._silent_pings = 0

    # --- the listener calls these -------------------------------------------------------------------------------

    @property
    def admitted(self) -> bool:
        return self._stream is not None or (self._client is not None and self._client.admitted)

    # --- asyncio calls these ------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        self._silent_pings = 0
        if self._request is not None:
            self._request.data_received(data)
            return
        if self._first is not None:
            data = self._first + data
            if any(method.startswith(data) for method in METHODS) and self._admit_http is not None:
                self._first = data
                return
            self._first = None
            if data.startswith(METHODS) and self._admit_http is not None:
                # Imported here: most servers have no such clients.
                from jumpseat.network.http_door import HttpRequest

                assert self._transport is not None
                self._request = HttpRequest(self._transport, self._check_http)
                self._request.data_received(data)
                return
        if self._stream is None:
            self._receive(memoryview(data))

    def _check_http(self, headers: Mapping[str, str], target: str) -> HttpDoor | HttpAnswer:
        """Check the host, the origin and the token of a request; return its door, or the refusal."""
        from jumpseat.network.http_door import HttpAnswer

        path, _, query = target.partition("?")
        host, origin = headers.get("host"), headers.get("origin")
        if host is None or not self._site.accepts_host(host):
            return self._refusal("another host")
        if path not in DOORS or self._admit_http is None:
            refusal = self._site.refuse_method(target, host)
            return HttpAnswer(refusal.status, refusal.body, refusal.headers)
        if origin != EDITOR_ORIGIN and not self._site.accepts_origin(origin, host):
            return self._refusal("another origin")
        token = token_of(query, headers.get("authorization"))
        return self._admit_http(path, token, has_origin=origin is not None) or self._refusal(WITHOUT)

    def _refusal(self, why: str) -> HttpAnswer:
        from jumpseat.network.http_door import HttpAnswer

        log.warning("refused a web request of %s: %s", self._peer, why)
        return HttpAnswer(HTTPStatus.FORBIDDEN, _FORBIDDEN)

    def _open_stream(self, request: Request) -> None:
        """Answer a GET that asks for events."""
        from jumpseat.network.http_door import EventStream, HttpAnswer, head_of

        assert self._transport is not None
        # The address was checked for headers that are given twice; of others, the last one counts.
        headers = {name.lower(): value for name, value in request.headers.raw_items()}
        found = self._check_http(headers, request.path)
        stream = EventStream(self._transport)
        refusal = found if isinstance(found, HttpAnswer) else None
        if not isinstance(found, HttpAnswer):
            refusal, self._on_room, self._on_gone = found.stream(headers, stream)
        if refusal is not None:
            self._transport.write(head_of(refusal) + refusal.body)
            self._transport.close()
            return
        self._stream = stream
        self._transport.set_write_buffer_limits(high=BUSY_BYTES, low=BUSY_BYTES // 4)

    def _receive(self, data: memoryview) -> None:
        """Handle bytes. Many small frames take time, so the rest of them waits until others have had their turn."""
        frames = 0
        while data and frames < _MOST_AT_ONCE and not self._is_behind:
            self._protocol.max_message_size = self._messages.max_body_bytes
            self._protocol.receive_data(bytes(data[:_BYTES_AT_ONCE]))
            data = data[_BYTES_AT_ONCE:]
            for event in self._protocol.events_received():
                frames += 1
                if isinstance(event, Request):
                    self._answer(event)
                else:
                    self._handle_frame(cast("Frame", event))
            if self._protocol.parser_exc is not None:
                log.warning("closed the connection of %s: %s", self._peer, self._protocol.parser_exc)
                data = data[:0]
        if self._rest or data:
            assert self._transport is not None
            (self._transport.pause_reading if data else self._transport.resume_reading)()
        self._rest = data
        if data:
            asyncio.get_running_loop().call_soon(self._go_on)
        self._write()

    @property
    def _is_behind(self) -> bool:
        """Return whether messages of this client wait already."""
        return self._client is not None and isinstance(wire := self._client.wire, Wire) and wire.behind

    def _go_on(self) -> None:
        if self._rest:
            self._receive(self._rest)

    def eof_received(self) -> bool:
        while self._rest:
            self._receive(self._rest)
        if self._request is not None:
            return True
        if self._client is not None:
            return bool(self._client.wire.eof_received())
        self._end(None)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(exc)

    def pause_writing(self) -> None:
        self._on_room()
        if self._client is not None:
            self._client.wire.pause_writing()

    def resume_writing(self) -> None:
        self._on_room()
        if self._client is not None:
            self._client.wire.resume_writing()

    # --- HTTP ---------------------------------------------------------------------------------------------------

    def _answer(self, request: Request) -> None:
        """Answer the first request: with a file, or by becoming a client of the server."""
        try:
            host, origin = request.headers.get("Host"), request.headers.get("Origin")
            authorization = request.headers.get("Authorization")
        except MultipleValuesError:
            return self._refuse("two hosts, origins or tokens")
        if host is None or not self._site.accepts_host(host):
            return self._refuse("another host")
        path, _, query = request.path.partition("?")
        connect = self._connect
        # Older websockets refuse all other methods.
        method = getattr(request, "method", "GET")
        if method not in ("GET", "HEAD") or (method == "HEAD" and path in (*DOORS, RPC_PATH)):
            return self._send(self._site.refuse_method(request.path, host), has_body=method != "HEAD")
        if path == ACP_PATH and "Upgrade" not in request.headers and self._admit_http is not None:
            self._open_stream(request)
            if self._stream is not None:
                # For a stream, the limits of requests are over.
                self._begun.set()
            return None
        if path in DOORS and self._admit is not None:
            if origin != EDITOR_ORIGIN and not self._site.accepts_origin(origin, host):
                return self._refuse("another origin")
            admitted = self._admit(path, token_of(query, authorization), has_origin=origin is not None)
            if admitted is None:
                return self._refuse(WITHOUT)
            connect = admitted
        elif not self._site.accepts_origin(origin, host):
            return self._refuse("another origin")
        elif path != RPC_PATH:
            return self._send(self._site.get(request.path, host), has_body=method != "HEAD")
        response = self._protocol.accept(request)
        if path == ACP_PATH:
            response.headers[CONNECTION_ID] = uuid4().hex
        self._protocol.send_response(response)
        if response.status_code == HTTPStatus.SWITCHING_PROTOCOLS:
            # In this order, because the first message of the server may be sent while the client is created.
            self._write()
            self._client = connect(Framing(lambda: self._messages, text_header, b"", _GOING_AWAY))
            assert self._transport is not None
            self._client.wire.connection_made(self._transport)
            self._begun.set()
            self._next_ping = asyncio.get_running_loop().call_later(self._ping_s, self._ping)
        return None

    def _refuse(self, why: str) -> None:
        log.warning("refused a web request of %s: %s", self._peer, why)
        self._send(
            Answer(HTTPStatus.FORBIDDEN, {"Content-Type": "text/plain"}, _FORBIDDEN),
        )

    def _send(self, answer: Answer, *, has_body: bool = True) -> None:
        headers = Headers(
            {**answer.headers, "Content-Length": str(len(answer.body)), "Connection": "close"},
        )
        status = HTTPStatus(answer.status)
        self._protocol.send_response(
            Response(status.value, status.phrase, headers, answer.body if has_body else b"")
        )

    # --- WebSocket ----------------------------------------------------------------------------------------------

    def _handle_frame(self, frame: Frame) -> None:
        # The protocol answers pings and closing frames itself, and checks the order and the sizes of parts.
        if frame.opcode not in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT) or self._client is None:
            return
        if frame.data:
            self._parts.append(bytes(frame.data))
        if frame.fin:
            message = b"".join(self._parts)
            self._parts.clear()
            self._client.wire.data_received(message)

    def _ping(self) -> None:
        """Ping the peer, or end the connection if it has not even sent a pong for the last pings."""
        assert self._transport is not None
        if self._transport.is_closing() or self._protocol.state is not State.OPEN:
            return
        if self._silent_pings == _MOST_SILENT_PINGS:
            log.info("closed the connection of %s, which answers no pings", self._peer)
            self.abort()
            return
        self._silent_pings += 1
        self._protocol.send_ping(b"")
        self._write()
        self._next_ping = asyncio.get_running_loop().call_later(self._ping_s, self._ping)

    def _write(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        for data in self._protocol.data_to_send():
            if data:
                self._transport.write(data)
            else:
                # TLS has no half-closed connections; what was written is sent first.
                self._transport.close()

    def _end(self, exc: Exception | None) -> None:
        self._begun.set()
        if self._stream is not None:
            self._stream.end()
        self._on_gone()
        self._rest = self._rest[:0]
        if self._next_ping is not None:
            self._next_ping.cancel()
        if self._client is not None:
            self._client.wire.connection_lost(exc)
