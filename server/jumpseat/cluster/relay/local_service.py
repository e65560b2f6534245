"""Serves the requests of one client about sessions that this replica owns, or may open.

A response is sent when all changes by its request are stored.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, cast

import anyio

from jumpseat.agent.client import Client
from jumpseat.agent.session.session import Session
from jumpseat.cluster.relay.client_sessions import ClientSessions
from jumpseat.cluster.relay.event_feed import Feed
from jumpseat.cluster.relay.fan_out import Handler
from jumpseat.cluster.relay.replica_connections import ReplicaConnections
from jumpseat.cluster.relay.resent_prompts import decode_sent, keep_id, lost_prompts
from jumpseat.cluster.relay.session_calls import ANSWERING, FEED_NOTE, OPENING, Call, tools_of
from jumpseat.cluster.sessions.lease import Response
from jumpseat.cluster.sessions.missed_events import Seen, missed, with_ends
from jumpseat.cluster.sessions.replica import Replica
from jumpseat.errors import JumpseatError, OutcomeUnknownError, StoreError
from jumpseat.rpc.connection import Connection
from jumpseat.sessions.context import Context
from jumpseat_protocol.envelope import REQUEST_CANCELLED, ErrorObject

log = logging.getLogger(__name__)

LEAVING_CHECKS: Final = 5
LEAVING_S: Final = 0.1
"""Time between checks: the end of a connection may arrive after its client has connected again."""


class LocalService:
    """Serves the requests of a client at this replica. A ``relayed`` client is connected to another one.

    ``find`` returns the function that serves a method in this process.
    """

    def __init__(
        self,
        replica: Replica,
        connections: ReplicaConnections,
        ctx: Context,
        client: Connection,
        sessions: ClientSessions,
        find: Callable[[str], Handler | None],
        *,
        relayed: bool,
    ) -> None:
        self._store = replica.store
        self._ownerships = replica.ownerships
        self._tasks = replica.tasks
        self._connections = connections
        self._ctx = ctx
        self._client = client
        self._sessions = sessions
        self._find = find
        self._relayed = relayed

    def handler(self, method: str) -> Handler:
        """Return the function that serves a known method in this process."""
        serve = self._find(method)
        assert serve is not None, "a method of the protocol"
        return serve

    def serve(self, call: Call) -> None:
        """Carry out a request."""
        if call.method in OPENING and not self._begin_feed(call):
            return
        answered = self._answered_call(call)
        try:
            result = call.serve(call.params)
        except Exception as error:
            self._fail(call, error)
            return
        lease = self._ownerships.lease(call.session_id)
        if answered is not None and lease is not None:
            lease.respond_with_result(answered, self._response(call, partial(call.later.succeed, result)))
        else:
            self.finish(call, result)

    def finish(self, call: Call, result: Any) -> None:
        """Respond with the result of a request, which may be an awaitable."""
        self._sessions.remember_when_done(call)
        if inspect.isawaitable(result):
            self._tasks.start_soon(self._await, call, result)
        else:
            self._respond(call, partial(call.later.succeed, result))

    async def free_tools(self, call: Call) -> None:
        """Detach clients that are gone and have the tools of a new client: it may have connected again."""
        for _ in range(LEAVING_CHECKS):
            session = self._ownerships.session(call.session_id)
            others = self._others(session, tools_of(call.method, call.params)) if session is not None else []
            if session is None or not others:
                return
            for client in others:
                if await self._connections.has_left(client):
                    log.info("session %s: the client that had the tools of another one is gone", session.id)
                    session.clients.detach(client)
            await anyio.sleep(LEAVING_S)

    def _others(self, session: Session, tools: set[str]) -> list[Client]:
        """Return the other clients of a session that have some of these tools."""
        return [
            attachment.client
            for attachment in session.clients.attachments()
            if attachment.client is not self._client and tools & attachment.tools.keys()
        ]

    # --- events ---------------------------------------------------------------------------------------------------

    def _begin_feed(self, call: Call) -> bool:
        """Begin with the events of a session that is being opened; return ``False`` if the request has failed."""
        lease = self._ownerships.lease(call.session_id)
        feed = self._sessions.feed(call.session_id)
        if lease is None:
            return True
        if not self._relayed:
            if feed.flows_from(lease):
                return True
            call.seen = feed.switch(lease, here=True)
        elif call.feed is not None:
            feed.switch(lease, here=True)
        elif not feed.flows_from(lease):
            # The replica of the client does not know yet that the session was opened here anew.
            call.move("the session was opened again")
            return False
        else:
            return True
        call.turn = feed.number
        if call.seen is not None:
            feed.hold()
        else:
            feed.begin()
            self._announce_feed(call, None)
        return True

    def _announce_feed(self, call: Call, seen: Seen | None) -> None:
        """Notify the client's replica that events begin, or of the place at which the client has joined."""
        if self._relayed:
            place = seen.encode() if seen is not None else None
            self._client.notify(FEED_NOTE, {"sessionId": call.session_id, "number": call.feed, "seen": place})

    def _settle(self, call: Call) -> None:
        """Note the place at which a client has joined a session anew."""
        session, lease = self._ownerships.session(call.session_id), self._ownerships.lease(call.session_id)
        feed = self._sessions.feed(call.session_id)
        if session is None or lease is None or feed.number != call.turn:
            return
        item = session.delivery.last or lease.first_place
        if item is not None:
            seen = Seen(item, session.delivery.in_run)
            feed.settle(seen)
            self._announce_feed(call, seen)

    async def _catch_up(self, call: Call, seen: Seen) -> None:
        """Send the client the events that it has missed while the session had no owner, or another one."""
        session, lease = self._ownerships.session(call.session_id), self._ownerships.lease(call.session_id)
        feed = self._sessions.feed(call.session_id)
        if session is None or lease is None or feed.number != call.turn:
            return
        # All of them are stored when the response has its turn, and later ones are not announced yet.
        items = with_ends(self._ctx.all_sessions.storage(session).log.read().records, lease.ends)
        done = anyio.Event()
        lease.respond(Response(partial(self._release, call, feed, session, items, seen, done), done.set))
        await done.wait()

    def _release(
        self,
        call: Call,
        feed: Feed,
        session: Session,
        items: list[dict[str, Any]],
        seen: Seen,
        done: anyio.Event,
    ) -> None:
        # A session that is being closed is followed to its next replica.
        if feed.number == call.turn and self._ownerships.session(call.session_id) is session:
            lost = missed(items, seen, feed.held(), working=session.working)
            self._announce_feed(call, None)
            feed.release(lost)
        done.set()

    # --- responses ------------------------------------------------------------------------------------------------

    def _fail(self, call: Call, error: Exception) -> None:
        if call.turn is not None and (feed := self._sessions.feed(call.session_id)).number == call.turn:
            feed.cut()
        self._respond(call, partial(call.fail, error))

    async def _await(self, call: Call, work: Awaitable[Any]) -> None:
        with call.scope:
            try:
                result = await work
                await self._complete(call, result)
            except Exception as error:
                self._fail(call, error)
            else:
                self._respond(call, partial(call.later.succeed, result))
            return
        call.later.fail(ErrorObject(code=REQUEST_CANCELLED, message="request cancelled"))

    async def _complete(self, call: Call, result: Any) -> None:
        """Do the rest of a request that has succeeded."""
        if call.taken and (session := self._ownerships.session(call.session_id)) is not None:
            await self._recover(session, go_on=bool(call.params.get("continuePendingWork")))
        if call.sent:
            self._send_lost(call)
        if call.turn is not None and call.seen is not None:
            await self._catch_up(call, call.seen)
        elif call.turn is not None:
            self._settle(call)
        if call.method == "sessions.fork":
            await self._store.store_fork(cast("dict[str, str]", result)["sessionId"])

    async def _recover(self, session: Session, *, go_on: bool) -> None:
        """Complete a session whose owner was killed: record the interruption, and end the run."""
        # Imported here: few sessions are taken over.
        from jumpseat.cluster.sessions.recovery import recover

        lease = self._ownerships.lease(session.id)
        if lease is None or not lease.interrupted:
            # Another client has opened the session at the same time.
            return
        lease.interrupted = False
        try:
            await recover(session, self._ctx.all_sessions, lease.ends, go_on=go_on)
        except StoreError as error:
            log.error("session %s cannot be recovered: %s", session.id, error)

    def _send_lost(self, call: Call) -> None:
        """Send the prompts again that the previous replica had accepted and not begun."""
        session = self._ownerships.session(call.session_id)
        if session is None:
            return
        records = self._ctx.all_sessions.storage(session).log.read().records
        serve = self.handler("session.send")
        for sent in lost_prompts(session, records, decode_sent(call.sent)):
            try:
                result = serve({**sent.params, "sessionId": call.session_id})
            except JumpseatError as error:
                log.warning("session %s: a prompt cannot be sent again: %s", call.session_id, error)
            else:
                keep_id(session, cast("dict[str, str]", result)["messageId"], sent.message_id)

    def _answered_call(self, call: Call) -> str | None:
        """Return the open tool call that a request answers; ``None`` for other requests and late answers."""
        session = self._ownerships.session(call.session_id) if call.method == ANSWERING else None
        asked = session.clients.external_calls.open() if session is not None else []
        request_id = call.params.get("requestId")
        return next((pending.question.id for pending in asked if pending.id == request_id), None)

    def _respond(self, call: Call, respond: Callable[[], None]) -> None:
        """Respond when everything is stored that the request has changed."""
        lease = self._ownerships.lease(call.session_id)
        if lease is None:
            respond()
        else:
            lease.respond(self._response(call, respond))

    def _response(self, call: Call, respond: Callable[[], None]) -> Response:
        return Response(respond, lambda: call.fail(OutcomeUnknownError(call.method)))
