"""The connection of a client to another replica: its requests go there, and what the replica sends goes to it."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import anyio
import orjson
from anyio.abc import TaskGroup

from jumpseat.cluster.nats.connection import NoReplyError
from jumpseat.cluster.nats.jetstream import JetStream
from jumpseat.cluster.relay.calls import Call
from jumpseat.cluster.relay.feed import Feed
from jumpseat.cluster.replicas.handshake import ACCEPTED, SPOKEN, Hello, HelloAccess
from jumpseat.cluster.replicas.tunnel import Tunnel, TunnelTransport
from jumpseat.cluster.sessions.missed_events import decode_seen
from jumpseat.errors import ClientCallError, OutcomeUnknownError
from jumpseat.rpc.connection import Connection
from jumpseat.rpc.transport import Wire
from jumpseat_protocol.envelope import INTERNAL_ERROR, ErrorObject
from jumpseat_protocol.framing import FramingError

if TYPE_CHECKING:
    from jumpseat_protocol.session_fs import SetFsProviderParams

log = logging.getLogger(__name__)

MOVED: Final = -32050
"""The error of a replica that does not own the session: the request was not carried out."""
MOVED_NOTE: Final = "$/moved"
"""The notification that a session has another owner."""
FEED_NOTE: Final = "$/feed"
"""The notification that the events of a session begin: its id, the number of the feed, what the client has seen."""
END_NOTE: Final = "$/end"
"""The last notification of a replica that ends: the number of requests that it has received."""
OPEN_S: Final = 2.0
_EVENT: Final = b'{"jsonrpc":"2.0","method":"session.event"'


class RemoteReplica:
    """The end of one client's connection to another replica, here.

    ``find_feed`` returns the feed of a session. ``on_moved`` is called with this object and the id of a session
    that has another owner, ``on_close`` when the replica is gone, ``again`` with a request that the replica has not
    carried out.
    """

    def __init__(
        self,
        stream: JetStream,
        tasks: TaskGroup,
        here: str,
        there: str,
        tunnel_id: str,
        connection: Connection,
        *,
        find_feed: Callable[[str], Feed | None],
        on_moved: Callable[[RemoteReplica, str], None],
        on_close: Callable[[RemoteReplica], None],
        again: Callable[[Call], None],
    ) -> None:
        self.there = there
        self.tunnel_id = tunnel_id
        self._find_feed = find_feed
        self._stream = stream
        self._tasks = tasks
        self._here = here
        self._connection = connection
        self._on_moved = on_moved
        self._on_close = on_close
        self._again = again
        self._ids = itertools.count(1)
        self._open: dict[int, Call] = {}
        self._asked: dict[Any, anyio.CancelScope] = {}
        self._opened = False
        self._early: list[bytes] = []
        self._wire = Wire(self._handle_body, self._handle_framing_error, self._handle_close)
        self.tunnel = Tunnel(
            stream,
            tasks,
            stream.names.to(here, f"tunnel.{tunnel_id}"),
            stream.names.to(there, f"tunnel.{tunnel_id}"),
            self._wire.data_received,
            self._wire.eof_received,
        )
        self._wire.connection_made(TunnelTransport(self.tunnel, self._wire))
        tasks.start_soon(self._begin)

    @property
    def client_connected(self) -> bool:
        """Return whether the client has not hung up."""
        return self._connection.connected

    def call(self, call: Call, more: dict[str, Any]) -> None:
        """Send a request with more params; its response follows."""
        number = next(self._ids)
        self._open[number] = call
        call.later.on_cancel = lambda: self._send({"method": "$/cancelRequest", "params": {"id": number}})
        self._send({"id": number, "method": call.method, "params": {**call.params, **more}})

    def close(self) -> None:
        """End the connection: the client has left."""
        self._wire.close()

    def lose(self) -> None:
        """End the connection at once: the replica is gone."""
        self.tunnel.lose()

    async def _begin(self) -> None:
        connection = self._connection
        access = connection.access
        hello = Hello(
            tunnel=self.tunnel_id,
            replica=self._here,
            label=connection.label,
            protocol=connection.protocol,
            telemetry=connection.wants_telemetry,
            session_fs=connection.session_fs.wire() if connection.session_fs is not None else None,
            access=HelloAccess(name=access.name, all=access.all) if access is not None else None,
            relay=SPOKEN.encode(),
        )
        try:
            answer = await self._stream.ask(self._stream.names.to(self.there, "open"), hello.encode(), OPEN_S)
        except NoReplyError as error:
            log.info("replica %s cannot be reached: %s", self.there, error)
            self.lose()
            return
        if answer != ACCEPTED:
            log.warning("replica %s refuses a connection: %s", self.there, answer[:200].decode(errors="replace"))
            self.lose()
            return
        self._opened = True
        early, self._early = self._early, []
        for body in early:
            self._wire.send(body)

    def _send(self, message: dict[str, Any]) -> None:
        body = orjson.dumps({"jsonrpc": "2.0", **message})
        if self._opened:
            self._wire.send(body)
        else:
            self._early.append(body)

    # --- what the replica sends -----------------------------------------------------------------------------------

    def _handle_body(self, body: bytes) -> None:
        if body.startswith(_EVENT):
            params = orjson.loads(body)["params"]
            feed = self._find_feed(params["sessionId"])
            if feed is not None and feed.take(self, params["event"]):
                self._connection.wire.send(body)
            return
        message = orjson.loads(body)
        method = message.get("method")
        if method is None:
            self._handle_response(message)
        elif "id" in message:
            self._tasks.start_soon(self._ask, message["id"], method, message.get("params"))
        elif method == MOVED_NOTE:
            self._on_moved(self, message["params"]["sessionId"])
        elif method == FEED_NOTE:
            self._begin_feed(message["params"])
        elif method == END_NOTE:
            self._end(message["params"]["received"])
        elif method == "$/cancelRequest":
            if (scope := self._asked.get(message["params"]["id"])) is not None:
                scope.cancel()
        else:
            self._connection.wire.send(body)

    def _begin_feed(self, params: dict[str, Any]) -> None:
        feed = self._find_feed(params["sessionId"])
        if feed is not None:
            feed.begin_from(self, params["number"], decode_seen(params["seen"]))

    def _end(self, received: int) -> None:
        """End the connection: the replica has responded to the first ``received`` requests, and ends."""
        calls = [self._open.pop(number) for number in list(self._open) if number > received]
        self.lose()
        for call in calls:
            self._again(call)

    def _handle_response(self, message: dict[str, Any]) -> None:
        call = self._open.pop(message.get("id", 0), None)
        if call is None:
            return
        error = message.get("error")
        if error is None:
            call.later.succeed(message.get("result"))
        elif error.get("code") == MOVED:
            self._again(call)
        else:
            call.later.fail(ErrorObject.model_validate(error))

    async def _ask(self, number: Any, method: str, params: Any) -> None:
        """Ask the client what the replica asks, and send the answer back."""
        scope = self._asked[number] = anyio.CancelScope()
        try:
            with scope:
                try:
                    answer: dict[str, Any] = {"result": await self._connection.peer.ask(method, params)}
                except ClientCallError as error:
                    answer = {"error": {"code": INTERNAL_ERROR, "message": str(error)}}
                self._send({"id": number, **answer})
        finally:
            del self._asked[number]

    def _handle_framing_error(self, error: FramingError) -> None:
        log.error("replica %s has sent an invalid frame: %s", self.there, error.message)
        self.tunnel.close()

    def _handle_close(self) -> None:
        for scope in list(self._asked.values()):
            scope.cancel()
        calls, self._open = list(self._open.values()), {}
        self._on_close(self)
        for call in calls:
            if self._opened and call.method != "session.resume":
                call.fail(OutcomeUnknownError(call.method))
            else:
                # It was not sent, or can be repeated.
                self._again(call)


def decode_provider(value: Any) -> SetFsProviderParams | None:
    """Return the file system of a client, as its replica tells; ``None`` if the client has none."""
    if value is None:
        return None
    from jumpseat_protocol.session_fs import SetFsProviderParams

    return SetFsProviderParams.model_validate(value)
