"""Where the requests of one client go: to this replica, or to the one that owns the session.

Requests about a session are carried out in the order of their arrival, also while the owner is looked for. How the
client opened each session is remembered, so that the session can be opened for it again at another replica.
"""

from __future__ import annotations

import inspect
import logging
import uuid
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, Protocol, TypeAlias, cast

import anyio
from anyio.abc import TaskGroup

from jumpseat.agent.session.session import Session
from jumpseat.cluster.calls import (
    ANSWERING,
    LEAVING,
    LISTING,
    OPENING,
    READING,
    SEEN,
    SENT,
    Call,
    creates,
    opening_again,
    session_of_call,
    with_session,
    working_directory_of,
)
from jumpseat.cluster.catching_up import Seen, decode_seen, lacks_idle, missed, with_idles
from jumpseat.cluster.index import Index
from jumpseat.cluster.lease import Response
from jumpseat.cluster.many import ManySessions
from jumpseat.cluster.membership import Membership
from jumpseat.cluster.ownership import OwnedElsewhereError, Ownerships
from jumpseat.cluster.prompts import SentPrompts, decode_sent, keep_id, lost_prompts
from jumpseat.cluster.remote import MOVED, MOVED_NOTE, RemoteReplica
from jumpseat.errors import (
    JumpseatError,
    OutcomeUnknownError,
    SessionElsewhereError,
    SessionNotFoundError,
    StoreUnavailableError,
)
from jumpseat.rpc.connection import Connection
from jumpseat.rpc.json_rpc_peer import Later
from jumpseat.rpc.routes import check_call
from jumpseat.rpc.wire_errors import error_of
from jumpseat.sessions.context import Context
from jumpseat_protocol.envelope import REQUEST_CANCELLED, ErrorObject
from jumpseat_protocol.lazy_dataclasses import dataclass

log = logging.getLogger(__name__)

ATTEMPTS: Final = 20
AGAIN_S: Final = 0.1
REOPEN_S: Final = 60.0
"""Time in which a session is opened again for a client whose replica is gone."""

Handler: TypeAlias = Callable[[Any], Any]


@dataclass(slots=True)
class RelayCounters:
    """The number of requests that this replica has relayed so far."""

    relayed: int = 0


class LocalReplica(Protocol):
    """The replica that a client is connected to, as :class:`jumpseat.cluster.cluster.Cluster`."""

    @property
    def tasks(self) -> TaskGroup: ...

    @property
    def ownerships(self) -> Ownerships: ...

    @property
    def membership(self) -> Membership: ...

    @property
    def index(self) -> Index: ...

    @property
    def counters(self) -> RelayCounters: ...

    @property
    def unavailable(self) -> bool: ...

    def session(self, session_id: str) -> Session | None: ...

    async def settle(self, session_id: str) -> None: ...

    def host_of(self, cwd: str | None) -> str | None: ...

    def find_here(self, ctx: Context, method: str) -> Handler: ...

    def connect_to(
        self,
        replica: str,
        connection: Connection,
        on_moved: Callable[[str], None],
        on_idle: Callable[[str], None],
        on_close: Callable[[RemoteReplica], None],
        again: Callable[[Call], None],
    ) -> RemoteReplica: ...

    def forget_remote(self, remote: RemoteReplica) -> None: ...

    async def recover(self, session: Session, *, go_on: bool) -> None: ...

    async def store_fork(self, session_id: str) -> None: ...


class ClientRoutes:
    """The routes of a client. A ``relayed`` one comes from another replica, which it tells what is not here."""

    def __init__(self, cluster: LocalReplica, ctx: Context, connection: Connection, *, relayed: bool) -> None:
        self._cluster = cluster
        self._ctx = ctx
        self._connection = connection
        self._relayed = relayed
        self._tasks: TaskGroup = cluster.tasks
        self._openings: dict[str, tuple[str, dict[str, Any]]] = {}
        self._places: dict[str, str] = {}
        self._seen: dict[str, Seen | None] = {}
        self._sent = SentPrompts()
        self._many = ManySessions(cluster, ctx, self.serve)
        self._remotes: dict[str, RemoteReplica] = {}
        # The requests about a session whose owner is being looked for.
        self._waiting: dict[str, list[Call]] = {}

    @property
    def remotes(self) -> list[RemoteReplica]:
        """The connections of this client to other replicas."""
        return list(self._remotes.values())

    def sessions(self) -> list[str]:
        """Return the sessions that the client has opened."""
        return list(self._openings)

    # --- requests -------------------------------------------------------------------------------------------------

    def serve(self, method: str, serve: Handler, params: Any) -> Any:
        """Serve a request, here by ``serve`` or elsewhere."""
        session_id = session_of_call(method, params)
        is_new = creates(method, params)
        if self._connection.access is None:
            return serve(params)
        if method == "sessionFs.setProvider" and not self._openings:
            # Connections to other replicas, which do not know of the file system.
            self.close()
        if (of_many := self._many.find(method, params)) is not None:
            check_call(self._ctx, method)
            return of_many(serve)
        if session_id is None and not (is_new and isinstance(params, dict)):
            return self._serve_list(serve, params) if method in LISTING else serve(params)
        given = cast("dict[str, Any]", params)
        check_call(self._ctx, method)
        if is_new and session_id is None:
            session_id = str(uuid.uuid4())
            call = self._call(method, with_session(method, given, session_id), session_id, serve)
            call.made_id = True
        else:
            assert session_id is not None, "checked above"
            lease = self._cluster.ownerships.lease(session_id)
            if (
                lease is not None
                and lease.settled
                and self._cluster.session(session_id) is not None
                and session_id not in self._waiting
                and method not in OPENING
                and method != ANSWERING
                and not self._cluster.unavailable
            ):
                return self._serve_at_once(method, serve, given, session_id)
            seen = decode_seen(given.pop(SEEN, None)) if self._relayed else None
            call = self._call(method, given, session_id, serve)
            call.seen = seen
            call.sent = given.pop(SENT, None) if self._relayed else None
        self._queue(call)
        return call.later

    def _call(self, method: str, params: dict[str, Any], session_id: str, serve: Handler) -> Call:
        scope = anyio.CancelScope()
        return Call(method, params, session_id, serve, Later(scope.cancel), scope)

    def _queue(self, call: Call) -> None:
        waiting = self._waiting.get(call.session_id)
        if waiting is not None:
            waiting.append(call)
            return
        if call.method not in OPENING and self._go_on(call):
            return
        self._waiting[call.session_id] = [call]
        self._tasks.start_soon(self._find, call.session_id)

    def _go_on(self, call: Call) -> bool:
        """Carry a request out where its session is known to be; return ``False`` if that is not known."""
        if self._cluster.unavailable:
            call.fail(StoreUnavailableError())
            return True
        lease = self._cluster.ownerships.lease(call.session_id)
        if lease is not None and not lease.lost and self._cluster.session(call.session_id) is not None:
            self._leave_place(call.session_id)
            self._serve_here(call)
            return True
        remote = self._remotes.get(self._places.get(call.session_id, ""))
        if remote is None:
            return False
        self._relay(call, remote)
        return True

    async def _find(self, session_id: str) -> None:
        """Find the owner of a session, and carry out the requests about it that wait."""
        waiting = self._waiting[session_id]
        try:
            while waiting:
                call = waiting[0]
                try:
                    await self._carry_out(call)
                except JumpseatError as error:
                    call.fail(error)
                waiting.pop(0)
        finally:
            for call in waiting:
                call.fail(StoreUnavailableError())
            del self._waiting[session_id]

    async def _carry_out(self, call: Call) -> None:
        cluster, session_id = self._cluster, call.session_id
        if cluster.unavailable:
            raise StoreUnavailableError
        await cluster.settle(session_id)
        if creates(call.method, call.params) and cluster.ownerships.lease(session_id) is None:
            await self._create(call)
            return
        if call.method not in OPENING and self._go_on(call):
            return
        if (lease := cluster.ownerships.lease(session_id)) is not None and call.method in OPENING:
            call.taken = lease.interrupted
            with cluster.ownerships.opening(session_id):
                await self._open_here(call)
            return
        owner = await cluster.ownerships.owner(session_id)
        if owner is None and call.method not in OPENING and session_id in self._openings:
            # The replica that ran it is gone.
            await self._carry_out(self._opening_again(session_id))
            if self._go_on(call):
                return
        if owner is not None and owner != cluster.membership.id:
            await self._go_to(owner, call)
        elif call.method in OPENING:
            await self._open(call)
        elif call.method in READING or call.method.endswith(".delete"):
            await self._read(call)
        elif owner is None and self._relayed:
            # Given up here: the replica of the client opens the session again.
            call.later.fail(ErrorObject(code=MOVED, message="no replica owns the session"))
        else:
            self._serve_here(call)

    async def _go_to(self, replica: str, call: Call) -> None:
        if self._relayed:
            call.later.fail(ErrorObject(code=MOVED, message=f"replica {replica} owns the session"))
            return
        self._relay(call, self._remote(replica))
        if call.method in OPENING:
            # Later requests rely on the opening.
            await call.wait()

    def _relay(self, call: Call, remote: RemoteReplica) -> None:
        if self._places.get(call.session_id) != remote.there:
            self._leave_place(call.session_id)
            self._places[call.session_id] = remote.there
        self._remember_when_done(call)
        self._cluster.counters.relayed += 1
        if call.seen is not None:
            call.params = {**call.params, SEEN: call.seen.encode()}
        if call.sent:
            call.params = {**call.params, SENT: call.sent}
        remote.call(call)

    def _remote(self, replica: str) -> RemoteReplica:
        remote = self._remotes.get(replica)
        if remote is None:
            remote = self._remotes[replica] = self._cluster.connect_to(
                replica,
                self._connection,
                self._handle_moved,
                self._sent.forget,
                self._handle_close,
                self._try_again,
            )
        return remote

    # --- here -----------------------------------------------------------------------------------------------------

    def _serve_at_once(self, method: str, serve: Handler, params: dict[str, Any], session_id: str) -> Any:
        """Serve a request about a session that is here and has nothing to store, as without a cluster."""
        result = serve(params)
        lease = self._cluster.ownerships.lease(session_id)
        if method != "session.send" and not inspect.isawaitable(result) and lease is not None and lease.settled:
            return result
        call = self._call(method, params, session_id, serve)
        self._finish(call, result)
        return call.later

    def _serve_here(self, call: Call) -> None:
        if call.seen is not None:
            self._connection.keep_back(call.session_id)
        answered = self._answered_call(call)
        try:
            result = call.serve(call.params)
        except Exception as error:
            self._respond(call, partial(call.fail, error))
            return
        lease = self._cluster.ownerships.lease(call.session_id)
        if answered is not None and lease is not None:
            lease.respond_with_result(answered, self._response(call, partial(call.later.succeed, result)))
        else:
            self._finish(call, result)

    def _answered_call(self, call: Call) -> str | None:
        """Return the open tool call that a request answers; ``None`` for other requests and late answers."""
        session = self._cluster.session(call.session_id) if call.method == ANSWERING else None
        asked = session.clients.external_calls.open() if session is not None else []
        request_id = call.params.get("requestId")
        return next((pending.question.id for pending in asked if pending.id == request_id), None)

    def _finish(self, call: Call, result: Any) -> None:
        self._remember_when_done(call)
        if inspect.isawaitable(result):
            self._tasks.start_soon(self._await, call, result)
        else:
            self._respond(call, partial(call.later.succeed, result))

    async def _await(self, call: Call, work: Awaitable[Any]) -> None:
        with call.scope:
            try:
                result = await work
                if call.taken and (session := self._cluster.session(call.session_id)) is not None:
                    await self._cluster.recover(session, go_on=bool(call.params.get("continuePendingWork")))
                if call.sent:
                    self._send_lost(call)
                if call.seen is not None:
                    await self._catch_up(call, call.seen)
                if call.method == "sessions.fork":
                    await self._cluster.store_fork(cast("dict[str, str]", result)["sessionId"])
            except Exception as error:
                self._connection.give(call.session_id)
                self._respond(call, partial(call.fail, error))
            else:
                self._respond(call, partial(call.later.succeed, result))
            return
        call.later.fail(ErrorObject(code=REQUEST_CANCELLED, message="request cancelled"))

    def _send_lost(self, call: Call) -> None:
        """Send the prompts again that the replica before had accepted, and has not begun."""
        session = self._cluster.session(call.session_id)
        if session is None:
            return
        records = self._ctx.all_sessions.storage(session).log.read().records
        serve = self._cluster.find_here(self._ctx, "session.send")
        for sent in lost_prompts(session, records, decode_sent(call.sent)):
            try:
                result = serve({**sent.params, "sessionId": call.session_id})
            except JumpseatError as error:
                log.warning("session %s: a prompt cannot be sent again: %s", call.session_id, error)
            else:
                keep_id(session, cast("dict[str, str]", result)["messageId"], sent.message_id)

    async def _catch_up(self, call: Call, seen: Seen) -> None:
        """Send the client the events that it has missed while the session had no owner, or another one."""
        session, lease = self._cluster.session(call.session_id), self._cluster.ownerships.lease(call.session_id)
        if session is None or lease is None:
            self._connection.give(call.session_id)
            return
        done = anyio.Event()
        # Later events are not stored yet, or were kept back.
        last = session.history.last_event_id

        def complete() -> None:
            if self._cluster.session(call.session_id) is not session:
                # It is being closed: the client follows it to its next replica.
                give_up()
                return
            kept = self._connection.keep_back(call.session_id)
            log_so_far = self._ctx.all_sessions.storage(session).log.read().records
            records = missed(log_so_far, seen, last, {event.id for event in kept})
            if records and not self._relayed:
                self._seen[call.session_id] = Seen(last or seen.event_id, session.working)
            self._connection.give(call.session_id, with_idles(records, seen, session.idle_event))
            if (
                not session.working
                and not any(event.type == "session.idle" for event in kept)
                and lacks_idle(seen, records)
            ):
                session.announce_idle_to(self._connection)
            done.set()

        def give_up() -> None:
            self._connection.give(call.session_id)
            done.set()

        lease.respond(Response(complete, give_up))
        await done.wait()

    def _respond(self, call: Call, respond: Callable[[], None]) -> None:
        """Respond when everything is stored that the request has changed."""
        lease = self._cluster.ownerships.lease(call.session_id)
        if lease is None:
            respond()
        else:
            lease.respond(self._response(call, respond))

    def _response(self, call: Call, respond: Callable[[], None]) -> Response:
        return Response(respond, lambda: call.fail(OutcomeUnknownError(call.method)))

    @property
    def _by_client(self) -> bool:
        """Whether the client stores its sessions itself."""
        return self._connection.session_fs is not None

    async def _create(self, call: Call) -> None:
        ownerships, session_id = self._cluster.ownerships, call.session_id
        host = self._cluster.host_of(working_directory_of(call.method, call.params))
        with ownerships.opening(session_id):
            async with ownerships.locked(session_id):
                await ownerships.claim_new(session_id, host, check=not call.made_id, by_client=self._by_client)
            await self._open_here(call)
        if self._cluster.session(session_id) is None:
            await ownerships.remove(session_id)

    async def _open(self, call: Call) -> None:
        """Claim a session that nobody owns, and open it here, or where its files are."""
        cluster, session_id = self._cluster, call.session_id
        entry = cluster.index.get(session_id)
        host = entry.host if entry is not None else None
        if host is not None and host != cluster.membership.host:
            replica = cluster.membership.on_host(host)
            if replica is None:
                raise SessionElsewhereError(session_id, host)
            await self._go_to(replica, call)
            return
        if cluster.membership.draining and (other := cluster.membership.other()) is not None:
            await self._go_to(other, call)
            return
        with cluster.ownerships.opening(session_id):
            try:
                async with cluster.ownerships.locked(session_id):
                    call.taken = await cluster.ownerships.claim(session_id, by_client=self._by_client)
            except OwnedElsewhereError as error:
                await self._go_to(error.replica, call)
                return
            await self._open_here(call)
        if cluster.session(session_id) is None:
            await cluster.ownerships.release(session_id)

    async def _open_here(self, call: Call) -> None:
        self._leave_place(call.session_id)
        self._serve_here(call)
        await call.wait()

    async def _read(self, call: Call) -> None:
        """Serve a request about a session that nobody has open."""
        ownerships, session_id = self._cluster.ownerships, call.session_id
        async with ownerships.locked(session_id):
            await ownerships.copy(session_id)
        self._serve_here(call)
        await call.wait()
        async with ownerships.locked(session_id):
            await ownerships.drop_copy(session_id)

    def _serve_list(self, serve: Handler, params: Any) -> Awaitable[Any]:
        async def listed() -> Any:
            if self._cluster.unavailable:
                raise StoreUnavailableError
            await self._cluster.index.catch_up()
            result = serve(params)
            return await result if inspect.isawaitable(result) else result

        return listed()

    # --- what the client has opened -------------------------------------------------------------------------------

    def _remember_when_done(self, call: Call) -> None:
        call.later.add_done_callback(lambda later: None if later.exception() else self._sent.note(call))
        if call.method in OPENING or call.method in LEAVING:
            call.later.add_done_callback(lambda later: self._remember(call, failed=later.exception() is not None))

    def _remember(self, call: Call, *, failed: bool) -> None:
        if failed:
            return
        if call.method in LEAVING:
            self._openings.pop(call.session_id, None)
            self._leave_place(call.session_id)
            self._seen.pop(call.session_id, None)
            return
        session = self._cluster.session(call.session_id)
        if session is not None and call.seen is None and not self._relayed:
            self._seen[call.session_id] = _seen_now(session)
        if not (call.made_id and call.method == "session.resume"):
            # Openings by this server leave some options out.
            self._openings[call.session_id] = (call.method, call.params)

    def handle_loss(self, session_id: str, seen: Seen | None) -> None:
        """Open a session elsewhere that this replica has lost, or tell the replica of the client.

        ``seen`` is what the clients here have got.
        """
        if self._relayed:
            self._connection.notify(MOVED_NOTE, {"sessionId": session_id})
            return
        self._seen[session_id] = seen or self._seen.get(session_id)
        self._handle_moved(session_id)

    def _handle_moved(self, session_id: str) -> None:
        self._leave_place(session_id)
        if session_id in self._openings and self._connection.connected:
            self._tasks.start_soon(self._open_again, session_id)

    def _opening_again(self, session_id: str) -> Call:
        """Return a request of this server that opens a session for the client, as the client has opened it."""
        params = opening_again(*self._openings[session_id], session_id)
        call = self._call(
            "session.resume", params, session_id, self._cluster.find_here(self._ctx, "session.resume")
        )
        call.made_id = True
        call.seen = self._seen.get(session_id)
        call.sent = [sent.encode() for sent in self._sent.of(session_id)]
        return call

    def _leave_place(self, session_id: str) -> None:
        """Forget which replica runs a session, and remember what the client has got from it."""
        if (remote := self._remotes.get(self._places.pop(session_id, ""))) is not None:
            self._note_seen(session_id, remote)

    def _note_seen(self, session_id: str, remote: RemoteReplica) -> None:
        self._seen[session_id] = remote.seen.take(session_id) or self._seen.get(session_id)

    async def _open_again(self, session_id: str) -> None:
        with anyio.move_on_after(REOPEN_S):
            while session_id in self._openings and self._connection.connected:
                call = self._opening_again(session_id)
                self._queue(call)
                await call.wait()
                if (failure := call.later.exception()) is None:
                    return
                log.info("session %s: cannot be opened again yet: %s", session_id, failure)
                await anyio.sleep(10 * AGAIN_S)

    # --- other replicas -------------------------------------------------------------------------------------------

    def _try_again(self, call: Call) -> None:
        """Look for the owner of a session again, whose request was not carried out."""
        self._leave_place(call.session_id)
        call.attempts += 1
        if call.attempts > ATTEMPTS:
            call.fail(SessionNotFoundError(call.session_id))
            return
        self._tasks.start_soon(self._queue_later, call)

    async def _queue_later(self, call: Call) -> None:
        await anyio.sleep(AGAIN_S)
        if call.session_id in self._waiting and call.method in OPENING:
            # The task of the waiting requests waits for the response of this one.
            try:
                await self._carry_out(call)
            except JumpseatError as error:
                call.later.fail(error_of(error))
            return
        self._queue(call)

    def _handle_close(self, remote: RemoteReplica) -> None:
        if self._remotes.get(remote.there) is remote:
            del self._remotes[remote.there]
        self._cluster.forget_remote(remote)
        for session_id in [name for name, place in self._places.items() if place == remote.there]:
            self._note_seen(session_id, remote)
            self._handle_moved(session_id)

    def close(self) -> None:
        """Leave the other replicas: the client has hung up."""
        self._openings.clear()
        for remote in list(self._remotes.values()):
            remote.close()


def _seen_now(session: Session) -> Seen | None:
    """Return what a client has got that has joined a session."""
    last = session.delivered or session.history.last_event_id
    return Seen(last, session.working) if last is not None else None
