"""The first byte of a TCP connection, which tells the protocol that its client speaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from jumpseat.network.listener import Newcomer, UnknownNewcomer

_OBJECT: Final = b"{"


class TcpNewcomer(UnknownNewcomer):
    """A TCP connection whose protocol is not known yet. See :class:`jumpseat.network.listener.Newcomer`.

    Messages of the Copilot SDK protocol begin with a header; ``connect`` creates such a client. Messages of the
    Agent Client Protocol are lines of JSON objects; ``connect_acp`` creates its client.
    """

    def __init__(self, connect: Callable[[], Newcomer], connect_acp: Callable[[], Newcomer]) -> None:
        super().__init__()
        self._connect = connect
        self._connect_acp = connect_acp

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        is_object = data.lstrip()[:1] == _OBJECT
        self._client = (self._connect_acp if is_object else self._connect)()
        wire = self._client.wire
        wire.connection_made(self._transport)
        self._transport.set_protocol(wire)
        self._begun.set()
        wire.data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._begun.set()
