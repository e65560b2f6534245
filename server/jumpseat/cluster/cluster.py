"""One replica of a cluster: its parts, its clients, the clients of other replicas, and its end."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final, Protocol

import anyio
import anyio.to_thread
import orjson
from anyio.abc import TaskGroup

from jumpseat.agent.session.session import Session
from jumpseat.cluster import jetstream
from jumpseat.cluster.calls import Call
from jumpseat.cluster.catching_up import Seen
from jumpseat.cluster.documents import ClusterDocuments
from jumpseat.cluster.index import Index
from jumpseat.cluster.jetstream import JetStream
from jumpseat.cluster.membership import Membership
from jumpseat.cluster.ownership import Ownerships
from jumpseat.cluster.remote import RemoteReplica, decode_provider
from jumpseat.cluster.routing import ClientRoutes, Handler, RelayCounters
from jumpseat.cluster.settings import ClusterSettings
from jumpseat.cluster.store import ClusterStore
from jumpseat.cluster.tunnel import RESET_FRAME, Tunnel, TunnelTransport, needs_reset
from jumpseat.deep_folders import delete_folder
from jumpseat.errors import JumpseatError, StoreError
from jumpseat.observability.gauge import Gauge
from jumpseat.rpc.connection import Connection
from jumpseat.sessions.access import Access
from jumpseat.sessions.context import Context
from jumpseat.sessions.registry import SessionRegistry
from jumpseat.store.location_approvals import LocationApprovals
from jumpseat.store.user_settings import FILE, UserSettings

log = logging.getLogger(__name__)

DISCONNECTED_S: Final = 2.0
"""Time without a connection to NATS after which requests about sessions are refused."""
STALLED_S: Final = 5.0
"""Time that an append may take before requests are refused: an election of NATS takes up to 9 s."""
GIVE_UP_S: Final = 12.0
"""Time that responses wait for what they have changed to be stored."""
CHECK_S: Final = 0.5
KEEP_ALIVE_CHECKS: Final = 10
"""Checks after which quiet connections between replicas are tried."""
RETENTION_CHECK_S: Final = 600.0


class Server(Protocol):
    """The server that this is a replica of."""

    @property
    def registry(self) -> SessionRegistry: ...

    def context_of(self, connection: Connection) -> Context:
        """Return the parts of the server for a connection."""
        ...

    def new_connection(self, on_close: Callable[[Connection], None], peer: str) -> Connection:
        """Create a connection that is not one of this server's own."""
        ...

    def find(self, ctx: Context, method: str) -> Handler | None:
        """Return the function that serves a method here."""
        ...

    def announce_here(self, params: dict[str, Any], created_by: str | None) -> None:
        """Notify the connections of this server of a change in the life of a session."""
        ...


class Cluster:
    """A replica. :meth:`serve` completes it with the server."""

    def __init__(self, stream: JetStream, settings: ClusterSettings, home: Path, tasks: TaskGroup) -> None:
        self.settings = settings
        self.tasks = tasks
        self.counters = RelayCounters()
        self._stream = stream
        self.membership = Membership(stream, settings, tasks, self._describe)
        self._home = home / "replicas" / self.membership.id
        self.index = Index(stream, tasks, self._home)
        self.documents = ClusterDocuments(stream, tasks)
        self.approvals = LocationApprovals(self.documents.approvals, self.location_key)
        self.user_settings = UserSettings(self.documents.settings, home / FILE)
        self.ownerships = Ownerships(stream, self.membership, self.index, tasks, self._handle_loss)
        self.store = ClusterStore(self._home, tasks, self.ownerships, self.index)
        self.ownerships.store = self.store
        self._server: Server | None = None
        self._routes: dict[Connection, ClientRoutes] = {}
        self._tunnels: dict[str, Tunnel] = {}
        self._from: dict[str, str] = {}
        self._connected_s = time.monotonic()
        self._began_s = time.time()

    async def start(self) -> None:
        """Join the cluster."""
        names, here = self._stream.names, self.membership.id
        self._stream.reconnects.append(self._handle_reconnect)
        self.membership.on_gone.append(self._handle_gone)
        await self._stream.listen(names.to(here, "open"), self._handle_open)
        await self._stream.listen(names.to(here, "tunnel.*"), self._handle_frame)
        await self._stream.listen(names.lifecycle, self._handle_lifecycle)
        await self.index.start()
        await self.documents.start()
        await self.membership.start()
        await anyio.to_thread.run_sync(self._remove_old_copies)
        self.tasks.start_soon(self._check)
        if self.settings.retention_s is not None:
            self.tasks.start_soon(self._remove_old, self.settings.retention_s)

    def _remove_old_copies(self) -> None:
        """Remove the working copies of replicas that were killed."""
        for folder in self._home.parent.glob("*"):
            if not self.membership.alive(folder.name):
                delete_folder(folder)

    def serve(self, server: Server) -> None:
        """Serve the clients of ``server``, and those of other replicas."""
        self._server = server
        self.ownerships.is_live = lambda session_id: self.session(session_id) is not None

    @property
    def server(self) -> Server:
        """The server that this is a replica of."""
        assert self._server is not None, "set before the first client"
        return self._server

    # --- state ----------------------------------------------------------------------------------------------------

    @property
    def unavailable(self) -> bool:
        """Return whether requests about sessions have to be refused: NATS cannot be reached, or is too slow."""
        return (
            time.monotonic() - self._connected_s > DISCONNECTED_S
            or self.membership.cut_off
            or self.membership.doubtful
            or self.ownerships.stalled_s > STALLED_S
        )

    def session(self, session_id: str) -> Session | None:
        """Return a session that is live here."""
        return self.server.registry.get_live(session_id)

    async def settle(self, session_id: str) -> None:
        """Wait until a session is given up that is being closed here, or was lost."""
        while (lease := self.ownerships.lease(session_id)) is not None:
            if lease.lost or lease.ended:
                await lease.released.wait()
                continue
            await self.server.registry.find_live(session_id)
            if self.ownerships.lease(session_id) is lease and not lease.lost and not lease.ended:
                return

    def host_of(self, cwd: str | None) -> str | None:
        """Return the host that a session with a working directory needs; ``None`` if all have the directory."""
        if cwd is None:
            return None
        path = Path(cwd)
        return None if any(path.is_relative_to(shared) for shared in self.settings.shared) else self.settings.host

    def location_key(self, location: str) -> str:
        """Return the name of approvals for a location: a folder of one host is another folder elsewhere."""
        host = self.host_of(location)
        return location if host is None else f"{host}:{location}"

    def location_of(self, key: str) -> str | None:
        """Return the location with a key; ``None`` if it is a folder of another host."""
        location = key.removeprefix(f"{self.settings.host}:")
        return location if self.location_key(location) == key else None

    def gauges(self) -> list[Gauge]:
        """Return the numbers of this replica that metrics show."""
        counters = self.ownerships.counters

        def append_s(share: float) -> float:
            appends = sorted(counters.append_s)
            return appends[int(len(appends) * share)] if appends else 0.0

        def gauge(name: str, unit: str, description: str, read: Callable[[], float]) -> Gauge:
            return Gauge(f"jumpseat.cluster.{name}", unit, description, read)

        return [
            gauge("owned", "{session}", "Sessions of this replica.", lambda: len(self.ownerships.owned())),
            gauge("relayed", "{request}", "Requests sent to other replicas.", lambda: self.counters.relayed),
            gauge("takeovers", "{session}", "Sessions taken over.", lambda: counters.takeovers),
            gauge("lost", "{session}", "Sessions lost to others.", lambda: counters.lost),
            gauge("appends", "{message}", "Messages stored.", lambda: counters.appends),
            gauge("append.median", "s", "Median time of the latest appends.", lambda: append_s(0.5)),
            gauge("append.p99", "s", "99th percentile of the latest appends.", lambda: append_s(0.99)),
        ]

    async def _remove_old(self, retention_s: float) -> None:
        """Remove the sessions that nobody has changed for ``retention_s``. One replica does it for all."""
        while True:
            await anyio.sleep(min(RETENTION_CHECK_S, retention_s / 10))
            if self.membership.id != min(replica.id for replica in self.membership.replicas()):
                continue
            before_ns = int((time.time() - retention_s) * 1e9)
            for entry in self.index.all(before_ns):
                try:
                    if await self.ownerships.owner(entry.session_id) is None:
                        await self.ownerships.remove(entry.session_id)
                        log.info("session %s is removed: it is older than store.retention_days", entry.session_id)
                except JumpseatError as error:
                    log.warning("session %s cannot be removed: %s", entry.session_id, error)

    def _describe(self) -> dict[str, Any]:
        appends = sorted(self.ownerships.counters.append_s)
        return {
            "startedS": self._began_s,
            "owned": len(self.ownerships.owned()),
            "clients": len(self._routes) - len(self._tunnels),
            "relayedClients": len(self._tunnels),
            "relayed": self.counters.relayed,
            "takeovers": self.ownerships.counters.takeovers,
            "lost": self.ownerships.counters.lost,
            "appends": self.ownerships.counters.appends,
            "appendMs": round(appends[len(appends) // 2] * 1000, 3) if appends else None,
            "appendP99Ms": round(appends[len(appends) * 99 // 100] * 1000, 3) if appends else None,
        }

    async def _check(self) -> None:
        for number in count():
            if number % KEEP_ALIVE_CHECKS == 0:
                for tunnel in list(self._tunnels.values()):
                    tunnel.keep_alive()
            if self.membership.doubtful and not self.membership.cut_off:
                try:
                    await self.ownerships.check()
                    self.membership.doubtful = False
                except StoreError as error:
                    log.info("the owners of sessions are not known yet: %s", error)
            self.ownerships.release_closed()
            if self._stream.connected:
                self._connected_s = time.monotonic()
            if self.ownerships.stalled_s > GIVE_UP_S:
                for session_id in self.ownerships.owned():
                    lease = self.ownerships.lease(session_id)
                    if lease is not None and lease.stalled_s > GIVE_UP_S:
                        lease.give_up_responses()
            await anyio.sleep(CHECK_S)

    # --- clients of this replica ----------------------------------------------------------------------------------

    def route(self, ctx: Context, connection: Connection) -> Callable[[str], Handler | None]:
        """Return the function that finds the handlers of a client's requests."""
        return self._route(ctx, connection, relayed=False)

    def _route(self, ctx: Context, connection: Connection, *, relayed: bool) -> Callable[[str], Handler | None]:
        routes = self._routes[connection] = ClientRoutes(self, ctx, connection, relayed=relayed)

        def find(method: str) -> Handler | None:
            serve = self.server.find(ctx, method)
            return None if serve is None else lambda params: routes.serve(method, serve, params)

        return find

    def find_here(self, ctx: Context, method: str) -> Handler:
        """Return the function that serves a known method here."""
        serve = self.server.find(ctx, method)
        assert serve is not None, "a method of the protocol"
        return serve

    def disconnected(self, connection: Connection) -> None:
        """Forget a client that has hung up."""
        routes = self._routes.pop(connection, None)
        if routes is not None:
            routes.close()

    # --- connections to other replicas ----------------------------------------------------------------------------

    def connect_to(
        self,
        replica: str,
        connection: Connection,
        on_moved: Callable[[str], None],
        on_idle: Callable[[str], None],
        on_close: Callable[[RemoteReplica], None],
        again: Callable[[Call], None],
    ) -> RemoteReplica:
        """Connect a client of this replica to another one."""
        tunnel_id = uuid.uuid4().hex
        remote = RemoteReplica(
            self._stream,
            self.tasks,
            self.membership.id,
            replica,
            tunnel_id,
            connection,
            on_moved=on_moved,
            on_idle=on_idle,
            on_close=on_close,
            again=again,
        )
        self._add_tunnel(tunnel_id, remote.tunnel, replica)
        return remote

    def forget_remote(self, remote: RemoteReplica) -> None:
        """Forget a connection to another replica that has ended."""
        self._remove_tunnel(remote.tunnel_id)

    def _add_tunnel(self, tunnel_id: str, tunnel: Tunnel, replica: str) -> None:
        self._tunnels[tunnel_id] = tunnel
        self._from[tunnel_id] = replica
        self.membership.watch_replica(replica)

    def _remove_tunnel(self, tunnel_id: str) -> None:
        if self._tunnels.pop(tunnel_id, None) is not None:
            self.membership.unwatch_replica(self._from.pop(tunnel_id))

    def _handle_open(self, _subject: str, data: bytes, reply: str) -> None:
        """Accept the client of another replica; before this server has started, the other one tries again."""
        if self._server is None:
            return
        hello = orjson.loads(data)
        tunnel_id, replica = hello["tunnel"], hello["from"]
        if tunnel_id not in self._tunnels:
            self._accept(hello, tunnel_id, replica)
        self.tasks.start_soon(self._stream.send, reply, b"ok")

    def _accept(self, hello: dict[str, Any], tunnel_id: str, replica: str) -> None:
        def close(closed: Connection) -> None:
            self._remove_tunnel(tunnel_id)
            self.disconnected(closed)
            self.server.registry.detach_client(closed)

        connection = self.server.new_connection(close, f"{hello['label']} at {replica}")
        access = hello["access"]
        connection.access = Access(access["name"], access["all"]) if access is not None else None
        connection.protocol = hello["protocol"]
        connection.wants_telemetry = bool(hello["telemetry"])
        connection.session_fs = decode_provider(hello.get("sessionFs"))
        connection.handshake_done = True
        ctx = self.server.context_of(connection)
        connection.serve(
            self._route(ctx, connection, relayed=True),
            lambda session_id, question: self.server.registry.answers(connection, session_id, question),
        )
        tunnel = Tunnel(
            self._stream,
            self.tasks,
            self._stream.names.to(self.membership.id, f"tunnel.{tunnel_id}"),
            self._stream.names.to(replica, f"tunnel.{tunnel_id}"),
            connection.wire.data_received,
            connection.wire.eof_received,
        )
        self._add_tunnel(tunnel_id, tunnel, replica)
        connection.wire.connection_made(TunnelTransport(tunnel, connection.wire))
        connection.admit()

    def _handle_frame(self, subject: str, data: bytes, reply: str) -> None:
        tunnel = self._tunnels.get(subject.rpartition(".")[2])
        if tunnel is not None:
            tunnel.receive(data)
        elif reply and needs_reset(data):
            # This replica has ended the connection, because it took the other one for dead.
            self.tasks.start_soon(self._stream.send, reply, RESET_FRAME)

    def _handle_reconnect(self) -> None:
        for tunnel in list(self._tunnels.values()):
            tunnel.resend()
        self.tasks.start_soon(self.membership.beat)

    def _handle_gone(self, replica: str) -> None:
        for tunnel_id, place in list(self._from.items()):
            if place == replica and (tunnel := self._tunnels.get(tunnel_id)) is not None:
                tunnel.abandon()

    # --- the lives of sessions ------------------------------------------------------------------------------------

    def announce(self, params: dict[str, Any], created_by: str | None) -> None:
        """Notify the clients of other replicas of a change in the life of a session."""
        message = {"from": self.membership.id, "params": params, "createdBy": created_by}
        self.tasks.start_soon(self._stream.send, self._stream.names.lifecycle, orjson.dumps(message))

    def _handle_lifecycle(self, _subject: str, data: bytes, _reply: str) -> None:
        message = orjson.loads(data)
        if message["from"] != self.membership.id and self._server is not None:
            self._server.announce_here(message["params"], message["createdBy"])

    def _handle_loss(self, session_id: str) -> None:
        self.tasks.start_soon(self._lose, session_id)

    async def _lose(self, session_id: str) -> None:
        """Stop the work of a session that another replica has taken, and let its clients have it from there."""
        concerned = [routes for routes in self._routes.values() if session_id in routes.sessions()]
        session = self.session(session_id)
        seen = _seen(session)
        try:
            with anyio.CancelScope(shield=True):
                if session is not None:
                    # A client that stores the session gets the last changes of its next owner only.
                    self.server.registry.storage(session).stop_storing()
                    await self.server.registry.close(session, keep=True)
                else:
                    await self.ownerships.release(session_id)
        except JumpseatError as error:
            log.error("session %s: cannot be closed: %s", session_id, error)
        for routes in concerned:
            routes.handle_loss(session_id, seen)

    async def recover(self, session: Session, *, go_on: bool) -> None:
        """Complete a session whose owner was killed: record the interruption, and end the run."""
        from jumpseat.cluster.recovery import recover

        lease = self.ownerships.lease(session.id)
        if lease is None or not lease.interrupted:
            # Another client has opened the session at the same time.
            return
        lease.interrupted = False
        try:
            await recover(session, self.server.registry, go_on=go_on)
        except StoreError as error:
            log.error("session %s cannot be recovered: %s", session.id, error)

    async def store_fork(self, session_id: str) -> None:
        """Store a copy of a session, if it was made in a folder: a client may have stored it itself.

        Raises:
            StoreError: it cannot be stored.
        """
        if self.store.has_draft(session_id):
            await self.ownerships.store_folder(session_id, self.store.draft(session_id))

    # --- the end --------------------------------------------------------------------------------------------------

    async def drain(self) -> None:
        """Take no more sessions, let turns end, and hand the sessions over: the replica is about to end.

        A turn that waits for a client that has left does not end by itself.
        """
        self.membership.draining = True
        await self.membership.beat()
        with anyio.move_on_after(self.settings.drain_s):
            async with anyio.create_task_group() as tasks:
                for session in self.server.registry.live_sessions():
                    if self.ownerships.lease(session.id) is not None:
                        tasks.start_soon(self._hand_over, session)

    async def _hand_over(self, session: Session) -> None:
        if not session.waits_for_absent_client():
            await session.queue.wait()
        concerned = [routes for routes in self._routes.values() if session.id in routes.sessions()]
        await self.server.registry.close(session, keep=True)
        for routes in concerned:
            routes.handle_loss(session.id, _seen(session))

    async def close(self) -> None:
        """Leave the cluster. The sessions are closed before."""
        for session_id in self.ownerships.owned():
            await self.ownerships.release(session_id)
        await self.membership.leave()
        self.index.close()
        await anyio.to_thread.run_sync(delete_folder, self._home)


def _seen(session: Session | None) -> Seen | None:
    """Return what the clients of this replica have got of a session."""
    if session is None or session.delivered is None:
        return None
    return Seen(session.delivered, session.run_delivered)


@asynccontextmanager
async def join_cluster(settings: ClusterSettings, home: Path, tasks: TaskGroup) -> AsyncGenerator[Cluster]:
    """Connect to NATS and join the cluster until the end of the block.

    Raises:
        StoreError: NATS cannot be reached, or has no JetStream.
        ConfigError: NATS does not accept the credentials.
    """
    async with jetstream.connect(settings, f"jumpseat {settings.host}") as stream:
        cluster = Cluster(stream, settings, home, tasks)
        await cluster.start()
        yield cluster
