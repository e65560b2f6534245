"""The streams of one connection over HTTP, as the transport of its wire: its own, and one for each session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final

import orjson

from jumpseat.network.http_door import Sink
from jumpseat.rpc.transport import BUSY_BYTES, Framing, Wire
from jumpseat_protocol.envelope import FramingError

MOST_STREAMS: Final = 1024
CONNECTION: Final = ""
"""The name of the stream of the connection; the others have the ids of sessions."""


class _Bodies:
    """Passes on separate messages. See :class:`jumpseat.rpc.transport.Decoder`."""

    max_body_bytes: int = 0

    def feed(self, data: bytes) -> Iterable[bytes | FramingError]:
        yield data


FRAMING: Final = Framing(_Bodies, lambda _body_bytes: b"", b"\n")
"""What comes in is a message; what goes out is split at the ends of lines."""


class Streams(asyncio.WriteTransport):
    """Routes messages to the streams that clients have opened, and keeps those for others until they open one."""

    def __init__(self, wire: Wire, on_close: Callable[[], None]) -> None:
        super().__init__()
        self._wire = wire
        self._on_close = on_close
        self._sinks: dict[str, Sink] = {}
        self._waiting: dict[str, list[bytes]] = {}
        self._waiting_bytes = 0
        # The streams for the responses to requests that were posted, by their ids.
        self.routes: dict[str, str] = {}
        self.greeting: Callable[[bytes], None] | None = None
        """Takes the first response, which no stream carries."""
        self._paused = False
        self._closed = False

    # --- the wire calls these -----------------------------------------------------------------------------------

    def write(self, data: bytes | bytearray | memoryview) -> None:
        for body in bytes(data).split(b"\n"):
            if body and not self._closed:
                self._route(body)
        self._check_room()

    def get_write_buffer_size(self) -> int:
        return self._waiting_bytes + sum(sink.unread_bytes for sink in self._sinks.values())

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Do nothing: the limits are those of the wire."""

    def is_closing(self) -> bool:
        return self._closed

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for sink in list(self._sinks.values()):
            sink.end()
        self._sinks.clear()
        self._waiting.clear()
        self._on_close()

    abort = close

    # --- clients ------------------------------------------------------------------------------------------------

    def attach(self, name: str, sink: Sink) -> bool:
        """Send a stream's messages to a client; return whether the stream is free, and not one too many."""
        if name in self._sinks or len(self._sinks) >= MOST_STREAMS:
            return False
        self._sinks[name] = sink
        sink.begin()
        for body in self._waiting.pop(name, ()):
            self._waiting_bytes -= len(body)
            sink.write(body)
        self._check_room()
        return True

    def detach(self, name: str, sink: Sink) -> None:
        """Keep the messages of a stream from now on."""
        if self._sinks.get(name) is sink:
            del self._sinks[name]
            self._check_room()

    @property
    def attached(self) -> int:
        """The number of open streams, each of which is a connection of the network."""
        return len(self._sinks)

    def check_room(self) -> None:
        """Go on with what waits for clients to read."""
        self._check_room()

    def _check_room(self) -> None:
        is_full = self.get_write_buffer_size() > BUSY_BYTES
        if is_full != self._paused and not self._closed:
            self._paused = is_full
            (self._wire.pause_writing if is_full else self._wire.resume_writing)()

    def _route(self, body: bytes) -> None:
        message: dict[str, Any] = orjson.loads(body)
        if "method" in message:
            params = message.get("params")
            given: Any = params.get("sessionId") if isinstance(params, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            name = given if isinstance(given, str) else CONNECTION
        else:
            name = self.routes.pop(key_of(message.get("id")), CONNECTION)
            if self.greeting is not None:
                greeting, self.greeting = self.greeting, None
                greeting(body)
                return
        sink = self._sinks.get(name)
        if sink is not None:
            sink.write(body)
        else:
            self._waiting.setdefault(name, []).append(body)
            self._waiting_bytes += len(body)


def key_of(msg_id: Any) -> str:
    """Return the id of a request as a key: 1 and "1" are different ids."""
    return f"{type(msg_id).__name__}:{msg_id}"
