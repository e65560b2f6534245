"""Route the requests of one client to this replica, or to the one that owns the session.

Requests about a session are carried out in the order of their arrival, also while the owner is looked for.
"""

from __future__ import annotations

import inspect
import uuid
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, cast

import anyio

from jumpseat.cluster.relay.client_sessions import ClientSessions
from jumpseat.cluster.relay.fan_out import FanOut, Handler
from jumpseat.cluster.relay.local_service import LocalService
from jumpseat.cluster.relay.remote_replicas import RemoteReplicas
from jumpseat.cluster.relay.replica_connections import ReplicaConnections
from jumpseat.cluster.relay.session_calls import (
    ANSWERING,
    END_NOTE,
    FEED,
    LISTING,
    MOVED_NOTE,
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
from jumpseat.cluster.sessions.claims import OwnedElsewhereError
from jumpseat.cluster.sessions.missed_events import decode_seen
from jumpseat.cluster.sessions.replica import Replica
from jumpseat.errors import JumpseatError, OutcomeUnknownError, SessionElsewhereError, StoreUnavailableError
from jumpseat.rpc.connection import Connection
from jumpseat.rpc.json_rpc_peer import Later
from jumpseat.rpc.routes import check_call
from jumpseat.rpc.wire_errors import error_of
from jumpseat.sessions.context import Context

ATTEMPTS: Final = 20
AGAIN_S: Final = 0.1


class ClientRoutes:
    """The routes of a client. A ``relayed`` client is connected to another replica, which looks for owners itself.

    ``find_here`` returns the function that serves a method in this process.
    """

    def __init__(
        self,
        replica: Replica,
        connections: ReplicaConnections,
        ctx: Context,
        client: Connection,
        find_here: Callable[[str], Handler | None],
        *,
        relayed: bool,
    ) -> None:
        self.relayed = relayed
        self.sessions = ClientSessions(replica.tasks, client, None if relayed else self._resume)
        self._replica = replica
        self._ctx = ctx
        self._client = client
        self._find_here = find_here
        self._here = LocalService(replica, connections, ctx, client, self.sessions, find_here, relayed=relayed)
        self._elsewhere = RemoteReplicas(replica, connections, client, self.sessions)
        self._fan_out = FanOut(replica, ctx, self._here.handler, self.serve)
        # The requests about a session whose owner is being looked for.
        self._waiting: dict[str, list[Call]] = {}
        self._unanswered: set[Call] = set()
        self._received = 0
        self._ending = False

    # --- requests -------------------------------------------------------------------------------------------------

    def find(self, method: str) -> Handler | None:
        """Return the function that serves a method here or elsewhere; ``None`` if the protocol lacks the method."""
        serve = self._find_here(method)
        return None if serve is None else partial(self.serve, method, serve)

    def serve(self, method: str, serve: Handler, params: Any) -> Any:
        """Serve a request, here by ``serve`` or elsewhere."""
        self._received += 1
        session_id = session_of_call(method, params)
        is_new = creates(method, params)
        if self._client.access is None:
            return serve(params)
        if method == "sessionFs.setProvider" and not self.sessions:
            # Connections to other replicas, which do not know of the file system.
            self.close()
        if (of_many := self._fan_out.find(method, params)) is not None:
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
            if self._is_settled_here(method, session_id):
                return self._serve_at_once(method, serve, given, session_id)
            call = self._call(method, given, session_id, serve)
            if self._relayed_params(given, call):
                call.params = {name: value for name, value in given.items() if name not in (FEED, SEEN, SENT)}
        if self._ending and self.relayed:
            call.move("the replica is ending")
        elif self._ending:
            call.fail(StoreUnavailableError())
        else:
            self._queue(call)
        return call.later

    def _relayed_params(self, params: dict[str, Any], call: Call) -> bool:
        """Take what the replica of the client tells besides; return whether there is anything."""
        if not self.relayed or call.method not in OPENING:
            return False
        call.feed, call.seen, call.sent = params.get(FEED), decode_seen(params.get(SEEN)), params.get(SENT)
        return True

    def _is_settled_here(self, method: str, session_id: str) -> bool:
        """Return whether a request is about a session that is here and has nothing to store."""
        lease = self._replica.ownerships.lease(session_id)
        return (
            lease is not None
            and lease.settled
            and self._replica.ownerships.session(session_id) is not None
            and session_id not in self._waiting
            and method not in OPENING
            and method != ANSWERING
            and not self._replica.unavailable
            and not self._replica.membership.doubtful
        )

    def _serve_at_once(self, method: str, serve: Handler, params: dict[str, Any], session_id: str) -> Any:
        """Serve a request about a session that is settled here, as without a cluster."""
        result = serve(params)
        lease = self._replica.ownerships.lease(session_id)
        if method != "session.send" and not inspect.isawaitable(result) and lease is not None and lease.settled:
            return result
        call = self._call(method, params, session_id, serve)
        self._here.finish(call, result)
        return call.later

    def _call(self, method: str, params: dict[str, Any], session_id: str, serve: Handler) -> Call:
        scope = anyio.CancelScope()
        call = Call(method, params, session_id, serve, Later(scope.cancel), scope, self._try_again)
        self._unanswered.add(call)
        call.later.add_done_callback(lambda _: self._unanswered.discard(call))
        return call

    def _queue(self, call: Call) -> None:
        waiting = self._waiting.get(call.session_id)
        if waiting is not None:
            waiting.append(call)
            return
        if call.method not in OPENING and self._go_on(call):
            return
        self._waiting[call.session_id] = [call]
        self._replica.tasks.start_soon(self._find, call.session_id)

    def _go_on(self, call: Call) -> bool:
        """Carry a request out where its session is known to be; return ``False`` if that is not known."""
        if self._replica.unavailable:
            call.fail(StoreUnavailableError())
            return True
        if self._replica.membership.doubtful:
            return False
        lease = self._replica.ownerships.lease(call.session_id)
        if lease is not None and not lease.lost and self._replica.ownerships.session(call.session_id) is not None:
            self._elsewhere.forget_place(call.session_id)
            self._here.serve(call)
            return True
        replica = self._elsewhere.place(call.session_id)
        if replica is None:
            return False
        self._elsewhere.serve(call, replica)
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
        replica, session_id = self._replica, call.session_id
        ownerships = replica.ownerships
        await replica.wait_until_known()
        await ownerships.settle(session_id)
        if creates(call.method, call.params) and ownerships.lease(session_id) is None:
            await self._create(call)
            return
        if call.method not in OPENING and self._go_on(call):
            return
        if (lease := ownerships.lease(session_id)) is not None and call.method in OPENING:
            call.taken = lease.interrupted
            with ownerships.opening(session_id):
                await self._open_here(call)
            return
        owner = await ownerships.owner(session_id)
        reads = call.method in READING or call.method.endswith(".delete")
        if owner is None and call.method not in OPENING and session_id in self.sessions and not self.relayed:
            # The replica that ran it is gone.
            opening = self._opening_again(*self.sessions[session_id], session_id)
            await self._carry_out(opening)
            if self._go_on(call):
                return
            if not reads and opening.later.done() and (failure := opening.later.exception()) is not None:
                call.later.fail_with(failure)
                return
        if owner is not None and owner != replica.membership.id:
            await self._go_to(owner, call)
        elif call.method in OPENING:
            await self._open(call)
        elif reads:
            await self._read(call)
        elif owner is None and self.relayed:
            # Given up here: the replica of the client opens the session again.
            call.move("no replica owns the session")
        elif session_id in self.sessions and replica.index.get(session_id) is not None:
            # The session is between two owners once more.
            raise StoreUnavailableError
        else:
            self._here.serve(call)

    @property
    def _by_client(self) -> bool:
        """True if the client stores its sessions itself."""
        return self._client.session_fs is not None

    async def _create(self, call: Call) -> None:
        ownerships, session_id = self._replica.ownerships, call.session_id
        host = self._replica.settings.host_of(working_directory_of(call.method, call.params))
        with ownerships.opening(session_id):
            async with ownerships.locked(session_id):
                await ownerships.claim_new(session_id, host, check=not call.made_id, by_client=self._by_client)
            await self._open_here(call)
        if self._replica.ownerships.session(session_id) is None:
            await ownerships.remove(session_id)

    async def _open(self, call: Call) -> None:
        """Claim a session without an owner, and open it here, or where its files are."""
        ownerships, membership, session_id = self._replica.ownerships, self._replica.membership, call.session_id
        entry = self._replica.index.get(session_id)
        host = entry.host if entry is not None else None
        if host is not None and host != membership.host:
            replica = membership.on_host(host)
            if replica is None:
                raise SessionElsewhereError(session_id, host)
            await self._go_to(replica, call)
            return
        if membership.draining and (other := membership.other()) is not None:
            await self._go_to(other, call)
            return
        with ownerships.opening(session_id):
            try:
                async with ownerships.locked(session_id):
                    call.taken = await ownerships.claim(session_id, by_client=self._by_client)
            except OwnedElsewhereError as error:
                await self._go_to(error.replica, call)
                return
            await self._open_here(call)
        if ownerships.session(session_id) is None:
            await ownerships.release(session_id)

    async def _open_here(self, call: Call) -> None:
        self._elsewhere.forget_place(call.session_id)
        await self._here.free_tools(call)
        self._here.serve(call)
        await call.wait()

    async def _read(self, call: Call) -> None:
        """Serve a request about a session that no client has open."""
        ownerships, session_id = self._replica.ownerships, call.session_id
        async with ownerships.locked(session_id):
            await ownerships.copy(session_id)
        self._here.serve(call)
        await call.wait()
        async with ownerships.locked(session_id):
            await ownerships.drop_copy(session_id)

    def _serve_list(self, serve: Handler, params: Any) -> Awaitable[Any]:
        async def listed() -> Any:
            await self._replica.wait_until_known()
            await self._replica.index.catch_up()
            result = serve(params)
            return await result if inspect.isawaitable(result) else result

        return listed()

    # --- other replicas -------------------------------------------------------------------------------------------

    async def _go_to(self, replica: str, call: Call) -> None:
        if self.relayed:
            call.move(f"replica {replica} owns the session")
            return
        self._replica.membership.check_fits(replica)
        self._elsewhere.serve(call, replica)
        if call.method in OPENING:
            # Later requests rely on the opening.
            await call.wait()

    def _try_again(self, call: Call) -> None:
        """Look for the owner of a session again, whose request was not carried out."""
        call.attempts += 1
        if call.attempts > ATTEMPTS:
            # The session moves all the time, or replicas do not agree on its owner yet.
            call.fail(StoreUnavailableError())
            return
        self._replica.tasks.start_soon(self._queue_later, call)

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

    # --- sessions that move ---------------------------------------------------------------------------------------

    def move(self, session_id: str) -> None:
        """Open a session elsewhere that this replica has lost or given up, or tell the replica of the client."""
        self.sessions.move(session_id)
        if self.relayed:
            self._client.notify(MOVED_NOTE, {"sessionId": session_id})

    def _resume(self, method: str, params: dict[str, Any], session_id: str) -> Call:
        call = self._opening_again(method, params, session_id)
        self._queue(call)
        return call

    def _opening_again(self, method: str, params: dict[str, Any], session_id: str) -> Call:
        """Return a request of this server that opens a session for the client, as the client has opened it."""
        serve = self._here.handler("session.resume")
        call = self._call("session.resume", opening_again(method, params, session_id), session_id, serve)
        call.made_id = True
        call.sent = [sent.encode() for sent in self.sessions.sent.of(session_id)]
        return call

    # --- the end --------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Leave the other replicas: the client has hung up."""
        self.sessions.clear()
        self._elsewhere.close()

    async def end(self, limit_s: float) -> None:
        """Carry out no more requests, and wait for the responses to the others, for ``limit_s`` at most.

        The replica of a client of another one is told which requests were not received. The rest of those of a
        client of this replica fail.
        """
        self._ending = self.relayed
        with anyio.move_on_after(limit_s):
            while self._unanswered:
                await next(iter(self._unanswered)).wait()
        # A client of this replica cannot continue elsewhere before its connection is closed.
        self._ending = True
        if self.relayed:
            self._client.notify(END_NOTE, {"received": self._received})
            self._client.close()
            return
        for call in list(self._unanswered):
            call.fail(OutcomeUnknownError(call.method))
