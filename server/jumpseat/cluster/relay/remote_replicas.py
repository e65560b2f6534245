"""The other replicas that serve requests of one client, and the client's connection to each."""

from __future__ import annotations

import itertools
import logging
import uuid
from concurrent.futures import Future
from functools import partial
from typing import Any, Final

import anyio
import orjson

from jumpseat.cluster.nats.connection import NoReplyError
from jumpseat.cluster.relay.client_sessions import ClientSessions
from jumpseat.cluster.relay.event_feed import Feed
from jumpseat.cluster.relay.replica_connections import ReplicaConnections
from jumpseat.cluster.relay.session_calls import (
    END_NOTE,
    FEED,
    FEED_NOTE,
    MOVED,
    MOVED_NOTE,
    OPENING,
    SEEN,
    SENT,
    Call,
)
from jumpseat.cluster.replicas.handshake import ACCEPTED, DOORS, SPOKEN, Handshake, HandshakeAccess
from jumpseat.cluster.sessions.missed_events import decode_seen
from jumpseat.cluster.sessions.replica import Replica
from jumpseat.errors import ClientCallError, OutcomeUnknownError
from jumpseat.rpc.connection import Connection
from jumpseat.rpc.transport import Wire
from jumpseat_protocol.envelope import INTERNAL_ERROR, ErrorObject, FramingError

log = logging.getLogger(__name__)

HANDSHAKE_S: Final = 2.0
_EVENT: Final = b'{"jsonrpc":"2.0","method":"session.event"'


class RemoteReplicas:
    """The other replicas that a client uses, and which of them runs which of the client's sessions."""

    def __init__(
        self, replica: Replica, connections: ReplicaConnections, client: Connection, sessions: ClientSessions
    ) -> None:
        self.connections = connections
        self.tasks = replica.tasks
        self.client = client
        self.sessions = sessions
        self._replica = replica
        self._places: dict[str, str] = {}
        self._remotes: dict[str, RemoteReplica] = {}

    def place(self, session_id: str) -> str | None:
        """Return the replica that served the last request about a session; ``None`` if it is gone."""
        place = self._places.get(session_id)
        return place if place in self._remotes else None

    def forget_place(self, session_id: str) -> None:
        """Forget which replica runs a session."""
        self._places.pop(session_id, None)

    def serve(self, call: Call, there: str) -> None:
        """Send a request to another replica."""
        self._replica.relayed += 1
        remote = self._remotes.get(there)
        if remote is None:
            remote = self._remotes[there] = RemoteReplica(self, there)
        self._places[call.session_id] = there
        self.sessions.remember_when_done(call)
        remote.send_call(call, self._params_of_opening(call, remote) if call.method in OPENING else {})

    def close(self) -> None:
        """Leave the other replicas: the client has hung up."""
        for remote in list(self._remotes.values()):
            remote.close()

    def _params_of_opening(self, call: Call, remote: RemoteReplica) -> dict[str, Any]:
        """Return the params by which the owner of a session knows what the client has received and sent."""
        more: dict[str, Any] = {SENT: call.sent} if call.sent else {}
        feed = self.sessions.feed(call.session_id)
        if not feed.flows_from(remote):
            seen = feed.switch(remote)
            more |= {FEED: feed.number, SEEN: seen.encode() if seen is not None else None}
            call.later.add_done_callback(partial(_cut_after_failure, feed, feed.number))
        return more

    def handle_moved(self, remote: RemoteReplica, session_id: str) -> None:
        """Open a session again that has left a replica."""
        if self._places.get(session_id) == remote.there:
            del self._places[session_id]
        feed = self.sessions.find_feed(session_id)
        # Another replica may have reported it earlier.
        if feed is not None and feed.comes_from(remote):
            self.sessions.move(session_id)

    def handle_refusal(self, call: Call) -> None:
        """Look for the owner of a session again: the replica has not carried the request out."""
        self.forget_place(call.session_id)
        call.try_again()

    def handle_close(self, remote: RemoteReplica) -> None:
        """Forget a replica that is gone, and open its sessions again."""
        if self._remotes.get(remote.there) is remote:
            del self._remotes[remote.there]
            self._places = {name: place for name, place in self._places.items() if place != remote.there}
        for session_id in self.sessions.fed_by(remote):
            self.sessions.move(session_id)


def _cut_after_failure(feed: Feed, number: int, later: Future[Any]) -> None:
    """End a feed whose opening has failed, as the owner does: the next opening begins anew."""
    if later.exception() is not None and feed.number == number:
        feed.cut()


class RemoteReplica:
    """The connection of a client to one other replica: requests go there, and its messages go to the client."""

    def __init__(self, remotes: RemoteReplicas, there: str) -> None:
        self.there = there
        self._remotes = remotes
        self._client = remotes.client
        self._tunnel_id = uuid.uuid4().hex
        self._ids = itertools.count(1)
        self._open: dict[int, Call] = {}
        self._asked: dict[Any, anyio.CancelScope] = {}
        self._accepted = False
        self._early: list[bytes] = []
        self._wire = Wire(self._handle_body, self._handle_framing_error, self._handle_close)
        connections = remotes.connections
        self._tunnel = connections.open(self._tunnel_id, there, self._client, self._wire, relayed=False)
        remotes.tasks.start_soon(self._begin)

    def send_call(self, call: Call, more: dict[str, Any]) -> None:
        """Send a request with more params; its response follows."""
        number = next(self._ids)
        self._open[number] = call
        call.later.on_cancel = lambda: self._send({"method": "$/cancelRequest", "params": {"id": number}})
        self._send({"id": number, "method": call.method, "params": {**call.params, **more}})

    def close(self) -> None:
        """End the connection: the client has left."""
        self._wire.close()

    async def _begin(self) -> None:
        client, stream = self._client, self._remotes.connections.stream
        access = client.access
        handshake = Handshake(
            tunnel=self._tunnel_id,
            replica=self._remotes.connections.here,
            label=client.label,
            protocol=client.protocol,
            telemetry=client.wants_telemetry,
            session_fs=client.session_fs.wire() if client.session_fs is not None else None,
            access=HandshakeAccess(name=access.name, all=access.all) if access is not None else None,
            relay=(SPOKEN if client.door is None else DOORS).encode(),
            door=client.door,
        )
        try:
            answer = await stream.ask(stream.names.to(self.there, "open"), handshake.encode(), HANDSHAKE_S)
        except NoReplyError as error:
            log.info("replica %s cannot be reached: %s", self.there, error)
            self._tunnel.lose()
            return
        if answer != ACCEPTED:
            log.warning("replica %s refuses a connection: %s", self.there, answer[:200].decode(errors="replace"))
            self._tunnel.lose()
            return
        self._accepted = True
        early, self._early = self._early, []
        for body in early:
            self._wire.send(body)

    def _send(self, message: dict[str, Any]) -> None:
        body = orjson.dumps({"jsonrpc": "2.0", **message})
        if self._accepted:
            self._wire.send(body)
        else:
            self._early.append(body)

    # --- messages of the replica ----------------------------------------------------------------------------------

    def _handle_body(self, body: bytes) -> None:
        if body.startswith(_EVENT):
            params = orjson.loads(body)["params"]
            feed = self._remotes.sessions.find_feed(params["sessionId"])
            if feed is not None and feed.take(self, params["event"]):
                self._client.wire.send(body)
            return
        message = orjson.loads(body)
        method = message.get("method")
        if method is None:
            self._handle_response(message)
        elif "id" in message:
            self._remotes.tasks.start_soon(self._ask, message["id"], method, message.get("params"))
        elif method == MOVED_NOTE:
            self._remotes.handle_moved(self, message["params"]["sessionId"])
        elif method == FEED_NOTE:
            self._begin_feed(message["params"])
        elif method == END_NOTE:
            self._end(message["params"]["received"])
        elif method == "$/cancelRequest":
            if (scope := self._asked.get(message["params"]["id"])) is not None:
                scope.cancel()
        else:
            self._client.wire.send(body)

    def _begin_feed(self, params: dict[str, Any]) -> None:
        feed = self._remotes.sessions.find_feed(params["sessionId"])
        if feed is not None:
            feed.begin_from(self, params["number"], decode_seen(params["seen"]))

    def _end(self, received: int) -> None:
        """End the connection: the replica has responded to the first ``received`` requests, and ends."""
        calls = [self._open.pop(number) for number in list(self._open) if number > received]
        self._tunnel.lose()
        for call in calls:
            self._remotes.handle_refusal(call)

    def _handle_response(self, message: dict[str, Any]) -> None:
        call = self._open.pop(message.get("id", 0), None)
        if call is None:
            return
        error = message.get("error")
        if error is None:
            call.later.succeed(message.get("result"))
        elif error.get("code") == MOVED:
            self._remotes.handle_refusal(call)
        else:
            call.later.fail(ErrorObject.model_validate(error))

    async def _ask(self, number: Any, method: str, params: Any) -> None:
        """Ask the client a question of the replica, and send the answer back."""
        scope = self._asked[number] = anyio.CancelScope()
        try:
            with scope:
                try:
                    answer: dict[str, Any] = {"result": await self._client.peer.ask(method, params)}
                except ClientCallError as error:
                    answer = {"error": {"code": INTERNAL_ERROR, "message": str(error)}}
                self._send({"id": number, **answer})
        finally:
            del self._asked[number]

    def _handle_framing_error(self, error: FramingError) -> None:
        log.error("replica %s has sent an invalid frame: %s", self.there, error.message)
        self._tunnel.close()

    def _handle_close(self) -> None:
        for scope in list(self._asked.values()):
            scope.cancel()
        calls, self._open = list(self._open.values()), {}
        self._remotes.connections.forget(self._tunnel_id)
        self._remotes.handle_close(self)
        for call in calls:
            if self._accepted and call.method != "session.resume":
                call.fail(OutcomeUnknownError(call.method))
            else:
                # It was not sent, or can be repeated.
                self._remotes.handle_refusal(call)
