"""The connections between this replica and others: one for each client of one that uses sessions of the other."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from typing import Final, Protocol

from anyio.abc import TaskGroup

from jumpseat.agent.client import Client
from jumpseat.cluster.nats.connection import NoReplyError
from jumpseat.cluster.nats.jetstream import JetStream
from jumpseat.cluster.relay.calls import Call
from jumpseat.cluster.relay.feed import Feed
from jumpseat.cluster.relay.remote import RemoteReplica, decode_provider
from jumpseat.cluster.replicas.handshake import ACCEPTED, SPOKEN, Hello, decode_versions, refusal
from jumpseat.cluster.replicas.membership import Membership
from jumpseat.cluster.replicas.tunnel import RESET_FRAME, Tunnel, TunnelTransport, needs_reset
from jumpseat.rpc.connection import Connection
from jumpseat.sessions.access import Access

log = logging.getLogger(__name__)

CLIENT_S: Final = 1.0
"""Time in which a replica answers whether a client is connected to it."""


class Acceptor(Protocol):
    """Serves the clients of other replicas, as :class:`jumpseat.cluster.cluster.Cluster`."""

    @property
    def serving(self) -> bool:
        """Return whether there is a server that clients can be given to."""
        ...

    def new_connection(self, on_close: Callable[[Connection], None], peer: str) -> Connection:
        """Create a connection for a client of another replica."""
        ...

    def serve_relayed(self, connection: Connection) -> None:
        """Serve the requests of a client of another replica."""
        ...

    def leave(self, connection: Connection) -> None:
        """Forget a client of another replica."""
        ...


class Links:
    """The ends of all connections to other replicas, on either side."""

    def __init__(self, stream: JetStream, membership: Membership, tasks: TaskGroup, acceptor: Acceptor) -> None:
        self._stream = stream
        self._membership = membership
        self._tasks = tasks
        self._acceptor = acceptor
        self._tunnels: dict[str, Tunnel] = {}
        self._replicas: dict[str, str] = {}
        self._remotes: dict[str, RemoteReplica] = {}
        self._accepted: dict[Client, str] = {}

    async def start(self) -> None:
        """Begin to listen to other replicas."""
        names, here = self._stream.names, self._membership.id
        self._stream.reconnects.append(self._handle_reconnect)
        self._membership.on_gone.append(self._handle_gone)
        await self._stream.listen(names.to(here, "open"), self._handle_open)
        await self._stream.listen(names.to(here, "client"), self._handle_question)
        await self._stream.listen(names.to(here, "tunnel.*"), self._handle_frame)

    @property
    def accepted(self) -> int:
        """Return the number of clients of other replicas."""
        return len(self._accepted)

    def keep_alive(self) -> None:
        """Find the connections that have ended at the other replica."""
        for tunnel in list(self._tunnels.values()):
            tunnel.keep_alive()

    def tunnels(self) -> list[Tunnel]:
        """Return the connections of clients of other replicas."""
        return [self._tunnels[tunnel_id] for tunnel_id in self._accepted.values()]

    # --- clients of this replica ----------------------------------------------------------------------------------

    def connect_to(
        self,
        replica: str,
        connection: Connection,
        find_feed: Callable[[str], Feed | None],
        on_moved: Callable[[RemoteReplica, str], None],
        on_close: Callable[[RemoteReplica], None],
        again: Callable[[Call], None],
    ) -> RemoteReplica:
        """Connect a client of this replica to another one."""
        tunnel_id = uuid.uuid4().hex
        remote = RemoteReplica(
            self._stream,
            self._tasks,
            self._membership.id,
            replica,
            tunnel_id,
            connection,
            find_feed=find_feed,
            on_moved=on_moved,
            on_close=on_close,
            again=again,
        )
        self._remotes[tunnel_id] = remote
        self._add(tunnel_id, remote.tunnel, replica)
        return remote

    def forget_remote(self, remote: RemoteReplica) -> None:
        """Forget a connection to another replica that has ended."""
        self._remotes.pop(remote.tunnel_id, None)
        self._remove(remote.tunnel_id)

    def _add(self, tunnel_id: str, tunnel: Tunnel, replica: str) -> None:
        self._tunnels[tunnel_id] = tunnel
        self._replicas[tunnel_id] = replica
        self._membership.watch_replica(replica)

    def _remove(self, tunnel_id: str) -> None:
        if self._tunnels.pop(tunnel_id, None) is not None:
            self._membership.unwatch_replica(self._replicas.pop(tunnel_id))

    # --- clients of other replicas --------------------------------------------------------------------------------

    def _handle_open(self, _subject: str, data: bytes, reply: str) -> None:
        """Accept the client of another replica; before this server has started, the other one tries again."""
        if not self._acceptor.serving:
            return
        hello = Hello.decode(data)
        if hello is None or not SPOKEN.fits(decode_versions(hello.relay)):
            log.warning("the client of a replica is refused: this one relays with protocol %s only", SPOKEN)
            self._tasks.start_soon(self._stream.send, reply, refusal())
            return
        if hello.tunnel not in self._tunnels:
            self._accept(hello, hello.tunnel, hello.replica)
        self._tasks.start_soon(self._stream.send, reply, ACCEPTED)

    def _accept(self, hello: Hello, tunnel_id: str, replica: str) -> None:
        def close(closed: Connection) -> None:
            self._accepted.pop(closed, None)
            self._remove(tunnel_id)
            self._acceptor.leave(closed)

        connection = self._acceptor.new_connection(close, f"{hello.label} at {replica}")
        access = hello.access
        connection.access = Access(access.name, access.all) if access is not None else None
        connection.protocol = hello.protocol
        connection.wants_telemetry = hello.telemetry
        connection.session_fs = decode_provider(hello.session_fs)
        connection.handshake_done = True
        self._acceptor.serve_relayed(connection)
        tunnel = Tunnel(
            self._stream,
            self._tasks,
            self._stream.names.to(self._membership.id, f"tunnel.{tunnel_id}"),
            self._stream.names.to(replica, f"tunnel.{tunnel_id}"),
            connection.wire.data_received,
            connection.wire.eof_received,
        )
        self._accepted[connection] = tunnel_id
        self._add(tunnel_id, tunnel, replica)
        connection.wire.connection_made(TunnelTransport(tunnel, connection.wire))
        connection.admit()

    async def has_left(self, client: Client) -> bool:
        """Return whether a client of another replica has hung up, or its replica does not answer."""
        tunnel_id = self._accepted.get(client)
        if tunnel_id is None:
            return isinstance(client, Connection) and not client.connected
        subject = self._stream.names.to(self._replicas[tunnel_id], "client")
        try:
            is_connected = await self._stream.ask(subject, tunnel_id.encode(), CLIENT_S) == b"connected"
        except NoReplyError:
            is_connected = False
        if not is_connected and (tunnel := self._tunnels.get(tunnel_id)) is not None:
            # If the client is there nevertheless, it attaches again.
            tunnel.abandon()
        return not is_connected

    def _handle_question(self, _subject: str, data: bytes, reply: str) -> None:
        remote = self._remotes.get(data.decode("ascii", "replace"))
        is_connected = remote is not None and remote.client_connected
        self._tasks.start_soon(self._stream.send, reply, b"connected" if is_connected else b"gone")

    # --- messages of other replicas -------------------------------------------------------------------------------

    def _handle_frame(self, subject: str, data: bytes, reply: str) -> None:
        tunnel = self._tunnels.get(subject.rpartition(".")[2])
        if tunnel is not None:
            tunnel.receive(data)
        elif reply and needs_reset(data):
            # This replica has ended the connection, because it took the other one for dead.
            self._tasks.start_soon(self._stream.send, reply, RESET_FRAME)

    def _handle_reconnect(self) -> None:
        for tunnel in list(self._tunnels.values()):
            tunnel.resend()

    def _handle_gone(self, replica: str) -> None:
        for tunnel_id, place in list(self._replicas.items()):
            if place == replica and (tunnel := self._tunnels.get(tunnel_id)) is not None:
                tunnel.abandon()
