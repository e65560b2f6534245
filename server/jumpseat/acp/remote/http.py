"""Connections of the Agent Client Protocol over streamable HTTP, by their ids."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, Final, Protocol, cast
from uuid import uuid4

import orjson
from msgspec import Struct

from jumpseat.acp.connection import AcpConnection
from jumpseat.acp.remote.streams import CONNECTION, FRAMING, Streams, key_of
from jumpseat.network.http_door import HttpAnswer, Sink
from jumpseat.network.site import CONNECTION_ID
from jumpseat.parsing.json_text import read_json
from jumpseat.rpc.transport import Framing
from jumpseat.sessions.access import Access

log = logging.getLogger(__name__)

ABSENT_S: Final = 300.0
"""The time after which a connection ends to which no stream was open, in seconds."""
MOST_ABSENT: Final = 32
"""The connections of one token to which no stream is open; beyond that, the one that rests longest ends."""
_ON_CONNECTION: Final = frozenset({"session/new", "session/load", "session/resume", "session/fork"})
"""The requests whose responses are on the stream of the connection: the client may have no other yet."""
_JSON: Final = {"Content-Type": "application/json"}


class Connect(Protocol):
    """Creates the client behind a connection. See :meth:`jumpseat.doors.Doors.connect_acp`."""

    def __call__(self, access: Access | None, framing: Framing, peer: str | None) -> AcpConnection: ...


class _Known(Struct):
    """A connection, and the timer of its end."""

    access: Access
    client: AcpConnection
    streams: Streams
    timer: asyncio.TimerHandle | None = None


class HttpConnections:
    """All connections over HTTP of a server."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._known: dict[str, _Known] = {}

    def of(self, access: Access, peer: str) -> AcpHttpDoor:
        """Return the door for a request with these rights, from an address."""
        return AcpHttpDoor(self, access, peer)

    @property
    def streams(self) -> int:
        """The number of open streams."""
        return sum(known.streams.attached for known in self._known.values())

    def open(self, access: Access, peer: str) -> tuple[str, _Known]:
        """Open a connection, and return its id, too."""
        absent = [one for one in self._known.values() if one.access == access and one.timer is not None]
        if len(absent) >= MOST_ABSENT:
            min(absent, key=_end_of).client.abort()
        number = uuid4().hex
        client = self._connect(access, FRAMING, peer)
        streams = Streams(client.wire, partial(self._forget, number))
        known = self._known[number] = _Known(access, client, streams)
        client.wire.connection_made(streams)
        self.rest(known)
        return number, known

    def find(self, number: str, access: Access) -> _Known | None:
        """Return a connection of the same token."""
        known = self._known.get(number)
        return known if known is not None and known.access == access else None

    def rest(self, known: _Known) -> None:
        """End a connection that no client uses for a while."""
        if known.timer is not None:
            known.timer.cancel()
        loop = asyncio.get_running_loop()
        known.timer = None if known.streams.attached else loop.call_later(ABSENT_S, known.client.abort)

    def _forget(self, number: str) -> None:
        known = self._known.pop(number, None)
        if known is not None and known.timer is not None:
            known.timer.cancel()


def _end_of(known: _Known) -> float:
    return known.timer.when() if known.timer is not None else 0.0


class AcpHttpDoor:
    """The door for one request. See :class:`jumpseat.network.http_door.HttpDoor`."""

    def __init__(self, connections: HttpConnections, access: Access, peer: str) -> None:
        self._connections = connections
        self._access = access
        self._peer = peer

    def post(self, headers: Mapping[str, str], body: bytes, answer: Callable[[HttpAnswer], None]) -> None:
        try:
            message: Any = read_json(body)
        except orjson.JSONDecodeError:
            return answer(HttpAnswer(HTTPStatus.BAD_REQUEST, b"Expected JSON.\n"))
        if isinstance(message, list):
            return answer(HttpAnswer(HTTPStatus.NOT_IMPLEMENTED, b"Batches are not supported.\n"))
        if not isinstance(message, dict):
            return answer(HttpAnswer(HTTPStatus.BAD_REQUEST, b"Expected an object.\n"))
        given = cast("dict[str, Any]", message)
        number, session = _id(headers, "connection"), _id(headers, "session")
        if number is None and given.get("method") == "initialize" and "id" in given:
            return self._greet(body, answer)
        found = self._find(number)
        if isinstance(found, HttpAnswer):
            return answer(found)
        method = given.get("method")
        if isinstance(method, str) and "id" in given:
            named = CONNECTION if method in _ON_CONNECTION else session
            found.streams.routes[key_of(given["id"])] = named or _session_of(given) or CONNECTION
        self._connections.rest(found)
        # Before the message is handled, because its response may be the next thing on a stream.
        answer(HttpAnswer(HTTPStatus.ACCEPTED))
        found.client.wire.data_received(body)
        return None

    def _greet(self, body: bytes, answer: Callable[[HttpAnswer], None]) -> None:
        """Open a connection. Its first response is that to the request."""
        number, known = self._connections.open(self._access, self._peer)

        def greet(response: bytes) -> None:
            answer(HttpAnswer(HTTPStatus.OK, response, {**_JSON, CONNECTION_ID: number}))

        known.streams.greeting = greet
        known.client.wire.data_received(body)

    def delete(self, headers: Mapping[str, str]) -> HttpAnswer:
        found = self._find(_id(headers, "connection"))
        if isinstance(found, HttpAnswer):
            return found
        found.client.close()
        return HttpAnswer(HTTPStatus.ACCEPTED)

    def stream(
        self, headers: Mapping[str, str], sink: Sink
    ) -> tuple[HttpAnswer | None, Callable[[], None], Callable[[], None]]:
        def nothing() -> None:
            """There is no stream."""

        accept = headers.get("accept", "")
        if not any(kind in accept for kind in ("text/event-stream", "text/*", "*/*")):
            return HttpAnswer(HTTPStatus.NOT_ACCEPTABLE, b"Expected Accept: text/event-stream.\n"), nothing, nothing
        found = self._find(_id(headers, "connection"))
        if isinstance(found, HttpAnswer):
            return found, nothing, nothing
        name = _id(headers, "session") or CONNECTION

        def begin() -> HttpAnswer | None:
            if found.streams.attach(name, sink):
                self._connections.rest(found)
                return None
            return HttpAnswer(HTTPStatus.CONFLICT, b"The stream is open already.\n")

        def end() -> None:
            found.streams.detach(name, sink)
            if not found.streams.is_closing():
                self._connections.rest(found)

        return begin(), found.streams.check_room, end

    def _find(self, number: str | None) -> _Known | HttpAnswer:
        if number is None:
            return HttpAnswer(HTTPStatus.BAD_REQUEST, f"Expected {CONNECTION_ID}.\n".encode())
        found = self._connections.find(number, self._access)
        return found or HttpAnswer(HTTPStatus.NOT_FOUND, f"Unknown {CONNECTION_ID}.\n".encode())


def _id(headers: Mapping[str, str], kind: str) -> str | None:
    return headers.get(f"acp-{kind}-id") or None


def _session_of(message: dict[str, Any]) -> str | None:
    params = message.get("params")
    found = cast("dict[str, Any]", params).get("sessionId") if isinstance(params, dict) else None
    return found if isinstance(found, str) else None
