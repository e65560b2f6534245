"""The connections by which another door of this server reaches the owners of sessions, as its clients would."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from jumpseat.cluster.relay.fan_out import Handler
from jumpseat.rpc.transport import LINES
from jumpseat_protocol.envelope import FramingError


class DoorLink:
    """A connection of a door, with the functions of its routes.

    ``receive`` takes a message of the door: the response to a question of an owner. ``flush`` hands it the messages
    that have arrived: responses come at once, and would overtake them. ``close`` ends the connection.
    """

    def __init__(
        self,
        find: Callable[[str], Handler | None],
        forget: Callable[[str], None],
        receive: Callable[[bytes], None],
        flush: Callable[[], None],
        close: Callable[[], None],
    ) -> None:
        self._find = find
        self._forget = forget
        self.receive = receive
        self.flush = flush
        self.close = close

    def find(self, method: str, /) -> Handler | None:
        """Return what serves a request here, or at the owner of its session."""
        return self._find(method)

    def forget(self, session_id: str, /) -> None:
        """End the interest in a session, which is not opened again when it moves."""
        self._forget(session_id)


class LocalTransport(asyncio.WriteTransport):
    """Hands what is sent on a connection to ``take``, message by message. Nothing waits to be read."""

    def __init__(self, take: Callable[[bytes], None]) -> None:
        super().__init__()
        self._take = take
        self._decoder = LINES.decoder()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        for body in self._decoder.feed(bytes(data)):
            if not isinstance(body, FramingError):
                self._take(body)

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Do nothing: there is no buffer."""

    def close(self) -> None:
        """Do nothing: there is no other end."""

    def abort(self) -> None:
        """Do nothing: there is no other end."""
