"""The first byte of a TCP connection, which tells the protocol that its client speaks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, cast

import anyio

from jumpseat.network.listener import Newcomer

_OBJECT: Final = b"{"


class TcpNewcomer(asyncio.Protocol):
    """A TCP connection whose protocol is not known yet. See :class:`jumpseat.network.listener.Newcomer`.

    Messages of the Copilot SDK protocol begin with a header; ``connect`` creates such a client. Messages of the
    Agent Client Protocol are lines of JSON objects; ``connect_acp`` creates its client.
    """

    def __init__(self, connect: Callable[[], Newcomer], connect_acp: Callable[[], Newcomer]) -> None:
        self._connect = connect
        self._connect_acp = connect_acp
        self._client: Newcomer | None = None
        self._transport: asyncio.Transport | None = None
        self._begun = anyio.Event()

    @property
    def wire(self) -> asyncio.Protocol:
        return self

    @property
    def admitted(self) -> bool:
        return self._client is not None and self._client.admitted

    async def wait_until_settled(self) -> None:
        await self._begun.wait()
        if self._client is not None:
            await self._client.wait_until_settled()

    def abort(self) -> None:
        if self._client is not None:
            self._client.abort()
        elif self._transport is not None:
            self._transport.abort()

    # --- asyncio calls these ------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

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
