"""One replica of a cluster: its parts, the notifications between replicas, and its end."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.to_thread
import orjson
from anyio.abc import TaskGroup

from jumpseat.agent.session.session import Session
from jumpseat.cluster.nats import jetstream
from jumpseat.cluster.nats.jetstream import JetStream
from jumpseat.cluster.nats.settings import ClusterSettings
from jumpseat.cluster.relay.clients import Clients, Server
from jumpseat.cluster.relay.door_links import DoorLink
from jumpseat.cluster.relay.replica_connections import ReplicaConnections
from jumpseat.cluster.replicas.membership import Membership
from jumpseat.cluster.sessions.documents import ClusterDocuments
from jumpseat.cluster.sessions.ownership import RELEASE_S, Ownerships
from jumpseat.cluster.sessions.replica import Replica
from jumpseat.errors import JumpseatError
from jumpseat.observability.settings import Gauge
from jumpseat.sessions.access import Access
from jumpseat.store.user.location_approvals import LocationApprovals
from jumpseat.store.user.settings import FILE, UserSettings
from jumpseat.system.file_trees import delete_folder

log = logging.getLogger(__name__)

ENDING_S: Final = 7.5
"""Time after ``drain_s`` in which a replica leaves; a process has ten seconds, its own end included."""
END_S: Final = 1.5
"""Time for the last requests of other replicas at the end, and for the responses on their way."""
LEAVE_S: Final = 0.5
"""Time to announce that this replica drains, and that it has left."""


class Cluster:
    """A replica of a cluster. :meth:`serve` completes it with the server."""

    def __init__(self, stream: JetStream, settings: ClusterSettings, home: Path, tasks: TaskGroup) -> None:
        self.settings = settings
        self.membership = Membership(stream, settings, tasks, self._describe)
        self._home = home / "replicas" / self.membership.id
        self.replica = Replica(stream, settings, self.membership, self._home, tasks, self._handle_loss)
        self.index = self.replica.index
        self.ownerships = self.replica.ownerships
        self._connections = ReplicaConnections(stream, self.membership, tasks)
        self.clients = Clients(self.replica, self._connections)
        self.documents = ClusterDocuments(stream, tasks)
        self.approvals = LocationApprovals(self.documents.approvals, settings.location_key)
        self.user_settings = UserSettings(self.documents.settings, home / FILE)
        self._stream = stream
        self._tasks = tasks
        self._server: Server | None = None
        self._began_s = time.time()
        self._left_by_s: float | None = None

    async def start(self) -> None:
        """Join the cluster."""
        self._stream.reconnects.append(self._beat_soon)
        await self._connections.start()
        await self.clients.start()
        await self._stream.listen(self._stream.names.lifecycle, self._handle_lifecycle)
        await self.index.start()
        await self.documents.start()
        await self.membership.start()
        await anyio.to_thread.run_sync(self._remove_old_copies)
        self.replica.start()

    def _beat_soon(self) -> None:
        self._tasks.start_soon(self.membership.beat)

    def _remove_old_copies(self) -> None:
        """Remove the working copies of replicas that were killed."""
        for folder in self._home.parent.glob("*"):
            if not self.membership.alive(folder.name):
                delete_folder(folder)

    def serve(self, server: Server) -> None:
        """Serve the clients of ``server``, and those of other replicas."""
        self._server = server
        self.ownerships.registry = server.registry
        self.clients.serve(server)

    def gauges(self) -> list[Gauge]:
        """Return the numbers of this replica that metrics show."""
        return gauges(self.ownerships, lambda: self.replica.relayed)

    def problems(self) -> list[str]:
        """Return the reasons why no new client should be sent to this replica."""
        problems = ["the store of the cluster cannot be reached"] if self.replica.unavailable else []
        if self.membership.draining:
            problems.append("the server hands its sessions over")
        return problems

    def _describe(self) -> dict[str, Any]:
        return {
            "startedS": self._began_s,
            "clients": self.clients.own,
            "relayedClients": self.clients.relayed,
            "relayed": self.replica.relayed,
            **heartbeat(self.ownerships),
        }

    # --- other doors --------------------------------------------------------------------------------------------

    def connect_door(self, access: Access, name: str, take: Callable[[bytes], None]) -> DoorLink:
        """See :meth:`jumpseat.cluster.relay.clients.Clients.connect_door`."""
        return self.clients.connect_door(access, name, take)

    async def catch_up(self) -> None:
        """Wait until all sessions are listed that were stored before the call.

        Raises:
            StoreError: NATS does not answer.
        """
        await self.replica.wait_until_known()
        await self.index.catch_up()

    def is_on_this_host(self, session_id: str) -> bool:
        """Return whether the files of a session can be read here."""
        entry = self.index.get(session_id)
        return entry is None or entry.host in (None, self.membership.host)

    # --- the lives of sessions ------------------------------------------------------------------------------------

    def announce(self, params: dict[str, Any], created_by: str | None) -> None:
        """Notify the clients of other replicas of a change in the life of a session."""
        message = {"from": self.membership.id, "params": params, "createdBy": created_by}
        self._tasks.start_soon(self._stream.send, self._stream.names.lifecycle, orjson.dumps(message))

    def _handle_lifecycle(self, _subject: str, data: bytes, _reply: str) -> None:
        message = orjson.loads(data)
        if message["from"] != self.membership.id and self._server is not None:
            self._server.announce_here(message["params"], message["createdBy"])

    def _handle_loss(self, session_id: str) -> None:
        self._tasks.start_soon(self._lose, session_id)

    async def _lose(self, session_id: str) -> None:
        """Stop the work of a session that another replica has taken, and open it there for its clients."""
        concerned = self.clients.concerned(session_id)
        session, registry = self.ownerships.session(session_id), self.ownerships.registry
        try:
            with anyio.CancelScope(shield=True):
                if session is not None and registry is not None:
                    # A client that stores the session gets the last changes of its next owner only.
                    registry.storage(session).stop_storing()
                    await registry.close(session, keep=True)
                else:
                    await self.ownerships.release(session_id)
        except JumpseatError as error:
            log.error("session %s: cannot be closed: %s", session_id, error)
        for routes in concerned:
            routes.move(session_id)

    @property
    def longest_end_s(self) -> float:
        """The time from the request to end to the end of the process, whatever does not end by itself."""
        return self.settings.drain_s + ENDING_S + LEAVE_S

    # --- the end --------------------------------------------------------------------------------------------------

    async def drain(self) -> None:
        """Accept no more sessions, wait for turns to end, and hand the sessions over: the replica is about to end.

        A turn that waits for a client that has left does not end by itself.
        """
        self.membership.draining = True
        self._left_by_s = anyio.current_time() + self.settings.drain_s + ENDING_S
        with anyio.move_on_after(LEAVE_S):
            await self.membership.beat()
        assert self._server is not None, "set before the first client"
        with anyio.move_on_after(self.settings.drain_s):
            async with anyio.create_task_group() as tasks:
                for session in self._server.registry.live_sessions():
                    if self.ownerships.lease(session.id) is not None:
                        tasks.start_soon(self._hand_over, session, self._server)

    async def _hand_over(self, session: Session, server: Server) -> None:
        if not session.waits_for_absent_client():
            await session.queue.wait()
        concerned = self.clients.concerned(session.id)
        await server.registry.close(session, keep=True)
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
        with anyio.CancelScope(deadline=min(left_by_s - LEAVE_S, anyio.current_time() + 2 * END_S)):
            await self.clients.end(END_S)
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


# --- the numbers that metrics and `jumpseat cluster status` show --------------------------------------------------


def gauges(ownerships: Ownerships, relayed: Callable[[], int]) -> list[Gauge]:
    """Return the metrics of a replica. ``relayed`` returns the number of requests sent to other replicas."""
    counters = ownerships.counters

    def gauge(name: str, unit: str, description: str, read: Callable[[], float]) -> Gauge:
        return Gauge(f"jumpseat.cluster.{name}", unit, description, read)

    return [
        gauge("owned", "{session}", "Sessions of this replica.", lambda: len(ownerships.owned())),
        gauge("relayed", "{request}", "Requests sent to other replicas.", relayed),
        gauge("takeovers", "{session}", "Sessions taken over.", lambda: counters.takeovers),
        gauge("lost", "{session}", "Sessions lost to others.", lambda: counters.lost),
        gauge("appends", "{message}", "Messages stored.", lambda: counters.appends),
        gauge("append.median", "s", "Median time of the latest appends.", lambda: _append_s(ownerships, 0.5)),
        gauge("append.p99", "s", "99th percentile of the latest appends.", lambda: _append_s(ownerships, 0.99)),
    ]


def heartbeat(ownerships: Ownerships) -> dict[str, Any]:
    """Return the part of a heartbeat about the sessions that a replica owns."""
    counters = ownerships.counters
    has_appends = bool(counters.append_s)
    return {
        "owned": len(ownerships.owned()),
        "takeovers": counters.takeovers,
        "lost": counters.lost,
        "appends": counters.appends,
        "appendMs": round(_append_s(ownerships, 0.5) * 1000, 3) if has_appends else None,
        "appendP99Ms": round(_append_s(ownerships, 0.99) * 1000, 3) if has_appends else None,
    }


def _append_s(ownerships: Ownerships, share: float) -> float:
    """Return a quantile of the durations of the latest appends, in seconds."""
    appends = sorted(ownerships.counters.append_s)
    return appends[int(len(appends) * share)] if appends else 0.0
