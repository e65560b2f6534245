"""The connection of one client: its transport, its JSON-RPC, and the client that its sessions see."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from io import StringIO
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import anyio
import orjson
from anyio.abc import TaskGroup
from msgspec.structs import replace

from jumpseat.rpc.client import DELTAS, ConnectedClient
from jumpseat.rpc.json_rpc_peer import JsonRpcPeer
from jumpseat.rpc.transport import HEADERS, Framing, Wire
from jumpseat.sessions.access import EVERYTHING, Access
from jumpseat.system.log_fields import fields
from jumpseat_protocol.envelope import INVALID_REQUEST, MAX_BODY_BYTES, FramingError
from jumpseat_protocol.events import (
    Event,
    EventPayload,
    MessageDelta,
    ReasoningDelta,
    ToolCallDelta,
    ToolExecutionPartialResult,
    ToolExecutionProgress,
)

if TYPE_CHECKING:
    from jumpseat.rpc.protocol2 import Protocol2, Question

log = logging.getLogger(__name__)

Subject: TypeAlias = tuple[str, str]
"""The type of an event, and the message or call that it belongs to."""


class HeldDeltas:
    """The held deltas of one client: of each session, in the order in which their messages began."""

    def __init__(self) -> None:
        self.messages: dict[str, dict[Subject, _Held]] = {}
        self.size = 0
        """Number of characters that are held."""

    def hold(self, session_id: str, event: Event) -> bool:
        """Keep a delta; return ``False`` if the event is not a delta."""
        described = _describe(event.payload)
        if described is None:
            return False
        subject, text = described
        session = self.messages.setdefault(session_id, {})
        held = session.get((event.type, subject))
        if held is None:
            held = session[event.type, subject] = _Held()
        elif isinstance(event.payload, ToolExecutionPartialResult | ToolExecutionProgress):
            # Each of these replaces the one before.
            self.size -= held.text.tell()
            held.text = StringIO()
        # A list of many short texts would take ten times their size.
        held.text.write(text)
        held.last = event
        self.size += len(text)
        return True

    def take(self, session_id: str | None = None) -> Iterator[tuple[str, Event]]:
        """Remove and yield the joined deltas, of one session or of all, each with the id of its session."""
        for name in [session_id] if session_id is not None else list(self.messages):
            for held in self.messages.pop(name, {}).values():
                self.size -= held.text.tell()
                yield name, _join(held.last, held.text.getvalue())


class _Held:
    """The text of the deltas of a message or call, and the last of them."""

    __slots__ = ("last", "text")

    last: Event

    def __init__(self) -> None:
        self.text = StringIO()


def _describe(payload: EventPayload) -> tuple[str, str] | None:
    """Return the id of the message or call of a delta, and its text; ``None`` if the event is no delta."""
    match payload:
        case MessageDelta():
            return payload.message_id, payload.delta_content
        case ReasoningDelta():
            return payload.reasoning_id, payload.delta_content
        case ToolCallDelta():
            return payload.tool_call_id, payload.input_delta
        case ToolExecutionPartialResult():
            return payload.tool_call_id, payload.partial_output
        case ToolExecutionProgress():
            return payload.tool_call_id, payload.progress_message
        case _:
            return None


def _join(event: Event, text: str) -> Event:
    """Return the last delta of a message with the text of all of them."""
    match event.payload:
        case MessageDelta() | ReasoningDelta():
            payload: EventPayload = replace(event.payload, delta_content=text)
        case ToolCallDelta():
            payload = replace(event.payload, input_delta=text)
        case _:
            payload = event.payload
    return Event.of(event.id, event.timestamp, event.parent_id, payload, event.agent_id, event.ephemeral)


# The largest message before the first valid request.
FIRST_MESSAGE_BYTES: Final = 64 * 1024
# The bytes of responses to invalid requests that a client may leave unread until then.
FIRST_UNREAD_BYTES: Final = 64 * 1024
# With more characters in held deltas, the deltas are sent.
HELD_CHARS: Final = 8 << 20


class Connection(ConnectedClient):
    """A client of the Copilot SDK protocol on the other end of a transport.

    ``on_close`` is called once, when the connection has ended. ``mask`` removes secrets from error messages.
    ``access`` is ``None`` until the client has presented a token. ``peer`` is the address of a TCP connection:
    there, messages are limited to :data:`FIRST_MESSAGE_BYTES` until the first valid request, and an invalid frame
    ends the connection. On stdio, where a client cannot reconnect, the next frame is read.
    Before :meth:`serve`, every method is unknown.
    """

    def __init__(
        self,
        on_close: Callable[[Connection], None],
        tasks: TaskGroup,
        mask: Callable[[str], str],
        *,
        access: Access | None = EVERYTHING,
        peer: str | None = None,
        framing: Framing = HEADERS,
    ) -> None:
        super().__init__(access, None, tasks)
        self._protocol2: Protocol2 | None = None
        self._concerns: Callable[[str, Question], bool] | None = None
        self._on_close = on_close
        self._peer = peer
        self._held = HeldDeltas()
        self.gates: dict[str, Callable[[Event], bool]] = {}
        """Decide whether to send an event of a session now, by session; for sessions that change owners."""
        self.door: str | None = None
        """The other protocol whose clients the connection serves, within a cluster."""
        self.admitted = peer is None
        self._settled = anyio.Event()
        self.wire = Wire(
            self._body, self._framing_error, self._handle_close, framing, self._release, self.handle_end
        )
        if peer is not None:
            self.wire.limit(FIRST_MESSAGE_BYTES, FIRST_UNREAD_BYTES)
        self.peer = JsonRpcPeer(self.wire.send, tasks, mask, label=lambda: self.label)

    def serve(
        self, find: Callable[[str], Callable[[Any], Any] | None], concerns: Callable[[str, Question], bool]
    ) -> None:
        """Serve the methods that ``find`` returns. ``concerns`` decides whether a question is for this client."""
        self.peer.find = find
        self._concerns = concerns

    def _adaptation(self) -> Protocol2 | None:
        """Return the adaptation to protocol 2, if the client speaks it."""
        if self._protocol2 is None and self.protocol == 2 and self._concerns is not None:
            # Imported here: few clients are that old.
            from jumpseat.rpc.protocol2 import Protocol2

            self._protocol2 = Protocol2(self.peer, self.tasks, self._concerns)
        return self._protocol2

    def deliver(self, session_id: str, event: Event) -> None:
        """Send a session event. For a client that is far behind, deltas are held, and joined by message."""
        if self.gates and (gate := self.gates.get(session_id)) is not None and not gate(event):
            return
        is_delta = event.type in DELTAS
        if is_delta and self.wire.lossy and self._held.size < HELD_CHARS and self._held.hold(session_id, event):
            return
        if self._held.messages:
            self._release(None if is_delta else session_id)
        self._send_event(session_id, event)

    def deliver_encoded(self, session_id: str, event: bytes) -> None:
        """Send the JSON of an event that was stored earlier."""
        self._release(session_id)
        self._send_encoded(session_id, event)

    def _release(self, session_id: str | None = None) -> None:
        """Send the held deltas of one session, or of all."""
        for held_session, held in self._held.take(session_id):
            self._send_event(held_session, held)

    def _send_event(self, session_id: str, event: Event) -> None:
        if self.protocol == 2 and (adaptation := self._adaptation()) is not None:
            if not adaptation.intercept(session_id, event):
                params = {"sessionId": session_id, "event": adaptation.wire(event)}
                self.peer.notify("session.event", params)
            return
        # The JSON of the event is shared by the log and all clients, and not copied into a message for each.
        self._send_encoded(session_id, event.encode())

    def _send_encoded(self, session_id: str, event: bytes) -> None:
        self.peer.notify_encoded(
            "session.event", b'{"sessionId":', orjson.dumps(session_id), b',"event":', event, b"}"
        )

    def admit(self) -> None:
        """Lift the limits that apply until the first valid request."""
        if not self.admitted:
            log.info("client connected", extra=fields(client=self.label))
            self.admitted = True
            self.wire.limit(MAX_BODY_BYTES)
            self._settled.set()

    async def wait_until_settled(self) -> None:
        """See :class:`jumpseat.network.listener.Newcomer`."""
        await self._settled.wait()

    def announce(self, params: dict[str, Any], created_by: str | None) -> None:
        """Send the lifecycle notification of a session, if the client sees sessions of the token ``created_by``."""
        if self.access is not None and self.access.sees(created_by):
            self.peer.notify("session.lifecycle", params)

    def catch_up(self, session_id: str, questions: Iterable[Question]) -> None:
        """Ask a client of protocol 2 the questions that were open before; clients of protocol 3 list them."""
        if self.protocol == 2 and (adaptation := self._adaptation()) is not None:
            for question in questions:
                adaptation.ask(session_id, question)

    @property
    def label(self) -> str:
        """The name of the connection in the log: that of its token, with the address of a TCP client."""
        name = self.access.name if self.access is not None else None
        return " ".join(filter(None, (name, self._peer))) or "stdio"

    def _body(self, body: bytes) -> None:
        self.peer.receive(body)

    def _framing_error(self, error: FramingError) -> None:
        if self._peer is None:
            self.peer.refuse(INVALID_REQUEST, error.message)
            return
        log.warning("closed the connection of %s: %s", self._peer, error.message)
        if not self.admitted:
            self.abort()
            return
        self.peer.refuse(INVALID_REQUEST, error.message)
        self.close()

    def _handle_close(self) -> None:
        if self.admitted:
            log.info("client disconnected", extra=fields(client=self.label))
        self._settled.set()
        self.peer.close()
        self._on_close(self)
