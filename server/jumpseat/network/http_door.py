"""HTTP requests of a protocol whose clients post messages and read streams of events, one request per connection.

The first line of a connection tells these requests from those of :mod:`jumpseat.network.web_socket`, which hands
them over. Host, origin and token are checked before the body is read.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final, Protocol

import h11
from msgspec import Struct

from jumpseat_protocol.envelope import MAX_BODY_BYTES

log = logging.getLogger(__name__)

KEEP_ALIVE_S: Final = 30.0
"""The time between comments in a stream, which keep it open through proxies, in seconds."""


class HttpAnswer(Struct, frozen=True):
    """The answer to a request."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}


class Sink(Protocol):
    """Takes the events of a stream."""

    def begin(self) -> None:
        """Accept the request, before the first event."""
        ...

    def write(self, event: bytes) -> None:
        """Send an event, the data of which has one line."""
        ...

    @property
    def unread_bytes(self) -> int:
        """The bytes that the client has not read yet."""
        ...

    def end(self) -> None:
        """End the stream."""
        ...


class HttpDoor(Protocol):
    """The protocol behind the requests, for one token."""

    def post(self, headers: Mapping[str, str], body: bytes, answer: Callable[[HttpAnswer], None]) -> None:
        """Take a message; ``answer`` is called once, now or later."""
        ...

    def delete(self, headers: Mapping[str, str]) -> HttpAnswer:
        """End a connection of the protocol."""
        ...

    def stream(
        self, headers: Mapping[str, str], sink: Sink
    ) -> tuple[HttpAnswer | None, Callable[[], None], Callable[[], None]]:
        """Open a stream; return the answer that refuses it, and what to call when it drains and when it ends."""
        ...


Check = Callable[[Mapping[str, str], str], "HttpDoor | HttpAnswer"]
"""Checks the host, the origin and the token of a request for a path, and returns the door or a refusal."""


class HttpRequest:
    """A connection with a request that is no GET; whoever has the transport passes its bytes on."""

    def __init__(self, transport: asyncio.Transport, check: Check) -> None:
        self._transport = transport
        self._check = check
        self._parser = h11.Connection(h11.SERVER)
        self._door: HttpDoor | None = None
        self._headers: dict[str, str] = {}
        self._method = b""
        self._body = bytearray()

    def data_received(self, data: bytes) -> None:
        if self._transport.is_closing():
            return
        try:
            self._parser.receive_data(data)
            while True:
                event = self._parser.next_event()
                if event is h11.NEED_DATA or event is h11.PAUSED:
                    return
                if isinstance(event, h11.Request):
                    self._begin(event)
                elif isinstance(event, h11.Data):
                    self._body += event.data
                    if len(self._body) > MAX_BODY_BYTES:
                        self._send(HttpAnswer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE))
                elif isinstance(event, h11.EndOfMessage):
                    self._serve()
                if self._transport.is_closing():
                    return
        except h11.RemoteProtocolError:
            # The text of the error quotes the request, in which there may be a token.
            log.info("closed a connection whose request is no HTTP")
            self._transport.abort()

    def _begin(self, request: h11.Request) -> None:
        headers: dict[str, str] = {}
        for name, value in request.headers:
            key = name.decode("latin-1").lower()
            if key in headers and key in ("host", "origin", "authorization"):
                return self._send(HttpAnswer(HTTPStatus.BAD_REQUEST, b"A header is given twice.\n"))
            headers[key] = value.decode("latin-1")
        self._headers, self._method = headers, bytes(request.method)
        checked = self._check(headers, request.target.decode("latin-1"))
        if isinstance(checked, HttpAnswer):
            return self._send(checked)
        self._door = checked
        if headers.get("expect", "").lower() == "100-continue":
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return None

    def _serve(self) -> None:
        if self._door is None:
            return
        if self._method == b"DELETE":
            self._send(self._door.delete(self._headers))
        elif self._headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            self._send(HttpAnswer(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, b"Expected application/json.\n"))
        else:
            self._door.post(self._headers, bytes(self._body), self._send)

    def _send(self, answer: HttpAnswer) -> None:
        if not self._transport.is_closing():
            self._transport.write(head_of(answer) + answer.body)
            self._transport.close()


def head_of(answer: HttpAnswer) -> bytes:
    """Return the head of a response, after whose body the connection is closed."""
    kind = {"Content-Type": "text/plain; charset=utf-8"} if answer.body else {}
    headers = {**kind, **answer.headers, "Content-Length": str(len(answer.body)), "Connection": "close"}
    status = HTTPStatus(answer.status)
    lines = [f"HTTP/1.1 {status.value} {status.phrase}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


class EventStream:
    """The response to a GET: events until one of both sides closes the connection. See :class:`Sink`."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Send the head of the response."""
        head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
        self._transport.write(f"{head}X-Accel-Buffering: no\r\nConnection: close\r\n\r\n".encode())
        self._keep_alive()

    def _keep_alive(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(KEEP_ALIVE_S, self._keep_alive)
        self._transport.write(b": alive\n\n")

    def write(self, event: bytes) -> None:
        self._transport.write(b"data: " + event + b"\n\n")

    @property
    def unread_bytes(self) -> int:
        return self._transport.get_write_buffer_size()

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._transport.close()
