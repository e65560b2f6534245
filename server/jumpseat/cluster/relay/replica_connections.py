"""The tunnels between this replica and others, one for each client that uses sessions of another replica."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

import anyio
from anyio.abc import TaskGroup
from msgspec import Struct

from jumpseat.agent.client import Client
from jumpseat.cluster.nats.connection import NoReplyError
from jumpseat.cluster.nats.jetstream import JetStream
from jumpseat.cluster.replicas.membership import Membership
from jumpseat.cluster.replicas.tunnel import RESET_FRAME, Tunnel, TunnelTransport, needs_reset
from jumpseat.rpc.connection import Connection
from jumpseat.rpc.transport import Wire

KEEP_ALIVE_S: Final = 5.0
"""Interval at which quiet tunnels are tried."""
CLIENT_S: Final = 1.0
"""Time in which a replica answers whether a client is connected to it."""


class _End(Struct, frozen=True):
    """This end of a tunnel to ``replica``. A ``relayed`` client is connected to the other end."""

    tunnel: Tunnel
    replica: str
    client: Connection
    relayed: bool


class ReplicaConnections:
    """This replica's ends of all tunnels."""

    def __init__(self, stream: JetStream, membership: Membership, tasks: TaskGroup) -> None:
        self.stream = stream
        self.here = membership.id
        self._membership = membership
        self._tasks = tasks
        self._ends: dict[str, _End] = {}

    async def start(self) -> None:
        """Begin to listen to other replicas."""
        names = self.stream.names
        self.stream.reconnects.append(self._handle_reconnect)
        self._membership.on_gone.append(self._handle_gone)
        await self.stream.listen(names.to(self.here, "client"), self._handle_question)
        await self.stream.listen(names.to(self.here, "tunnel.*"), self._handle_frame)
        self._tasks.start_soon(self._keep_alive)

    def __contains__(self, tunnel_id: str) -> bool:
        return tunnel_id in self._ends

    def open(self, tunnel_id: str, replica: str, client: Connection, wire: Wire, *, relayed: bool) -> Tunnel:
        """Connect ``wire`` to another replica by a new tunnel, until :meth:`forget`."""
        names = self.stream.names
        tunnel = Tunnel(
            self.stream,
            self._tasks,
            names.to(self.here, f"tunnel.{tunnel_id}"),
            names.to(replica, f"tunnel.{tunnel_id}"),
            wire.data_received,
            partial(wire.connection_lost, None),
        )
        self._ends[tunnel_id] = _End(tunnel, replica, client, relayed)
        self._membership.watch_replica(replica)
        wire.connection_made(TunnelTransport(tunnel, wire))
        return tunnel

    def forget(self, tunnel_id: str) -> None:
        """Forget a tunnel that has ended."""
        if (end := self._ends.pop(tunnel_id, None)) is not None:
            self._membership.unwatch_replica(end.replica)

    def relayed(self) -> list[Tunnel]:
        """Return the tunnels of clients of other replicas."""
        return [end.tunnel for end in self._ends.values() if end.relayed]

    async def has_left(self, client: Client) -> bool:
        """Return whether a client has hung up, or is connected to a replica that does not answer."""
        tunnel_id = next((name for name, end in self._ends.items() if end.relayed and end.client is client), None)
        if tunnel_id is None:
            return isinstance(client, Connection) and not client.connected
        end = self._ends[tunnel_id]
        subject = self.stream.names.to(end.replica, "client")
        try:
            is_connected = await self.stream.ask(subject, tunnel_id.encode(), CLIENT_S) == b"connected"
        except NoReplyError:
            is_connected = False
        if not is_connected:
            # If the client is there nevertheless, it attaches again.
            end.tunnel.abandon()
        return not is_connected

    # --- messages of other replicas -------------------------------------------------------------------------------

    def _handle_question(self, _subject: str, data: bytes, reply: str) -> None:
        end = self._ends.get(data.decode("ascii", "replace"))
        is_connected = end is not None and not end.relayed and end.client.connected
        self._tasks.start_soon(self.stream.send, reply, b"connected" if is_connected else b"gone")

    def _handle_frame(self, subject: str, data: bytes, reply: str) -> None:
        end = self._ends.get(subject.rpartition(".")[2])
        if end is not None:
            end.tunnel.receive(data)
        elif reply and needs_reset(data):
            # This replica has ended the tunnel, because it took the other one for dead.
            self._tasks.start_soon(self.stream.send, reply, RESET_FRAME)

    def _handle_reconnect(self) -> None:
        for tunnel in self._tunnels():
            tunnel.resend()

    def _handle_gone(self, replica: str) -> None:
        for tunnel in self._tunnels(replica):
            tunnel.abandon()

    async def _keep_alive(self) -> None:
        """Find the tunnels that have ended at the other replica."""
        while True:
            for tunnel in self._tunnels():
                tunnel.keep_alive()
            await anyio.sleep(KEEP_ALIVE_S)

    def _tunnels(self, replica: str | None = None) -> Iterator[Tunnel]:
        return iter([end.tunnel for end in self._ends.values() if replica in (None, end.replica)])
