"""One replica of a cluster: its parts, its clients, the clients of other replicas, and its end."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final, Protocol

import anyio
import anyio.to_thread
import orjson
from anyio.abc import TaskGroup

from jumpseat.agent.client import Client
from jumpseat.agent.session.session import Session
from jumpseat.cluster.gauges import gauges, heartbeat
from jumpseat.cluster.nats import jetstream
from jumpseat.cluster.nats.jetstream import JetStream
from jumpseat.cluster.nats.settings import ClusterSettings
from jumpseat.cluster.relay.replica_connections import Links
from jumpseat.cluster.relay.routing import ClientRoutes, Handler, RelayCounters
from jumpseat.cluster.replicas.membership import Membership
from jumpseat.cluster.sessions.documents import ClusterDocuments
from jumpseat.cluster.sessions.index import Index
from jumpseat.cluster.sessions.orphans import remove_orphans_for_ever
from jumpseat.cluster.sessions.ownership import RELEASE_S, Ownerships
from jumpseat.cluster.sessions.store import ClusterStore
from jumpseat.errors import JumpseatError, StoreError, StoreUnavailableError
from jumpseat.observability.gauge import Gauge
from jumpseat.rpc.connection import Connection
from jumpseat.sessions.context import Context
from jumpseat.sessions.registry import SessionRegistry
from jumpseat.store.user.location_approvals import LocationApprovals
from jumpseat.store.user.settings import FILE, UserSettings
from jumpseat.system.file_trees import delete_folder

log = logging.getLogger(__name__)

DISCONNECTED_S: Final = 2.0
"""Time without a connection to NATS after which requests about sessions are refused."""
STALLED_SHARE: Final = 5 / 12
"""Time that an append may take before requests are refused, as a share of the time that they wait for NATS."""
CHECK_S: Final = 0.5
KEEP_ALIVE_CHECKS: Final = 10
"""Checks after which quiet connections between replicas are tried."""
RETENTION_CHECK_S: Final = 600.0
ENDING_S: Final = 7.5
"""Time after ``drain_s`` in which a replica leaves: ten seconds are promised, and the process has to end, too."""
END_S: Final = 1.5
"""Time that the last requests of other replicas get at the end, and their responses on the way."""
LEAVE_S: Final = 0.5
"""Time to tell the other replicas that this one drains, and that it has left: without NATS, nobody hears it."""


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
        self.links = Links(stream, self.membership, tasks, self)
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
        self._connected_s = time.monotonic()
        self._began_s = time.time()
        self._left_by_s: float | None = None

    async def start(self) -> None:
        """Join the cluster."""
        self._stream.reconnects.append(self._beat_soon)
        await self.links.start()
        await self._stream.listen(self._stream.names.lifecycle, self._handle_lifecycle)
        await self.index.start()
        await self.documents.start()
        await self.membership.start()
        await anyio.to_thread.run_sync(self._remove_old_copies)
        self.tasks.start_soon(self._check)
        if self.settings.retention_s is not None:
            self.tasks.start_soon(self._remove_old, self.settings.retention_s)
        self.tasks.start_soon(remove_orphans_for_ever, self._stream, lambda: self.membership.is_first)

    def _beat_soon(self) -> None:
        self.tasks.start_soon(self.membership.beat)

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
            or self.ownerships.stalled_s > self.settings.patience_s * STALLED_SHARE
        )

    async def wait_until_known(self) -> None:
        """Wait until the owners of this replica's sessions are looked up, as they are after each doubt about them.

        Raises:
            StoreUnavailableError: requests about sessions have to be refused, or NATS does not answer in time.
        """
        if not self.unavailable:
            with anyio.move_on_after(self.settings.patience_s):
                await self.membership.wait_until_certain()
        if self.unavailable or self.membership.doubtful:
            raise StoreUnavailableError

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
        return gauges(self.ownerships, lambda: self.counters.relayed)

    async def _remove_old(self, retention_s: float) -> None:
        """Remove the sessions that nobody has changed for ``retention_s``. One replica does it for all."""
        while True:
            await anyio.sleep(min(RETENTION_CHECK_S, retention_s / 10))
            if not self.membership.is_first:
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
        return {
            "startedS": self._began_s,
            "clients": len(self._routes) - self.links.accepted,
            "relayedClients": self.links.accepted,
            "relayed": self.counters.relayed,
            **heartbeat(self.ownerships),
        }

    async def _check(self) -> None:
        for number in count():
            if number % KEEP_ALIVE_CHECKS == 0:
                self.links.keep_alive()
            if self.membership.doubtful and not self.membership.cut_off:
                # Another doubt may come while this replica looks.
                doubts = self.membership.doubts
                try:
                    await self.ownerships.check()
                    self.membership.settle(doubts)
                except StoreError as error:
                    log.info("the owners of sessions are not known yet: %s", error)
            self.ownerships.release_closed()
            if self._stream.connected:
                self._connected_s = time.monotonic()
            if self.ownerships.stalled_s > self.settings.patience_s:
                for session_id in self.ownerships.owned():
                    lease = self.ownerships.lease(session_id)
                    if lease is not None and lease.stalled_s > self.settings.patience_s:
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

    async def has_left(self, client: Client) -> bool:
        """Return whether a client has hung up, or is connected to a replica that does not answer."""
        return await self.links.has_left(client)

    @property
    def serving(self) -> bool:
        """Return whether :meth:`serve` was called."""
        return self._server is not None

    def new_connection(self, on_close: Callable[[Connection], None], peer: str) -> Connection:
        """Create a connection for a client of another replica."""
        return self.server.new_connection(on_close, peer)

    def serve_relayed(self, connection: Connection) -> None:
        """Serve the requests of a client of another replica."""
        ctx = self.server.context_of(connection)
        connection.serve(
            self._route(ctx, connection, relayed=True),
            lambda session_id, question: self.server.registry.answers(connection, session_id, question),
        )

    def leave(self, connection: Connection) -> None:
        """Forget a client of another replica."""
        self.disconnected(connection)
        self.server.registry.detach_client(connection)

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
        concerned = self._concerned(session_id)
        session = self.session(session_id)
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
            routes.move(session_id)

    def _concerned(self, session_id: str) -> list[ClientRoutes]:
        """Return the routes of the clients that have opened a session."""
        return [routes for routes in self._routes.values() if session_id in routes.openings]

    async def recover(self, session: Session, *, go_on: bool) -> None:
        """Complete a session whose owner was killed: record the interruption, and end the run."""
        from jumpseat.cluster.sessions.recovery import recover

        lease = self.ownerships.lease(session.id)
        if lease is None or not lease.interrupted:
            # Another client has opened the session at the same time.
            return
        lease.interrupted = False
        try:
            await recover(session, self.server.registry, lease.ends, go_on=go_on)
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
        self._left_by_s = anyio.current_time() + self.settings.drain_s + ENDING_S
        with anyio.move_on_after(LEAVE_S):
            await self.membership.beat()
        with anyio.move_on_after(self.settings.drain_s):
            async with anyio.create_task_group() as tasks:
                for session in self.server.registry.live_sessions():
                    if self.ownerships.lease(session.id) is not None:
                        tasks.start_soon(self._hand_over, session)

    async def _hand_over(self, session: Session) -> None:
        if not session.waits_for_absent_client():
            await session.queue.wait()
        concerned = self._concerned(session.id)
        await self.server.registry.close(session, keep=True)
        for routes in concerned:
            routes.move(session.id)

    async def close(self) -> None:
        """Leave the cluster. The sessions are closed before."""
        left_by_s = self._left_by_s if self._left_by_s is not None else anyio.current_time() + ENDING_S
        released_by_s = min(left_by_s - LEAVE_S - END_S, anyio.current_time() + RELEASE_S)
        with anyio.CancelScope(deadline=released_by_s):
            async with anyio.create_task_group() as tasks:
                for session_id in self.ownerships.owned():
                    tasks.start_soon(self.ownerships.release, session_id, released_by_s)
        tunnels = self.links.tunnels()
        with anyio.CancelScope(deadline=min(left_by_s - LEAVE_S, anyio.current_time() + 2 * END_S)):
            async with anyio.create_task_group() as tasks:
                for routes in list(self._routes.values()):
                    tasks.start_soon(routes.end, END_S)
            for tunnel in tunnels:
                await tunnel.wait_until_sent()
        with anyio.move_on_after(LEAVE_S):
            await self.membership.leave()
        self.index.close()
        await anyio.to_thread.run_sync(delete_folder, self._home)


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
