"""The rules of the Copilot SDK protocol, which hold in every conversation.

Resumed sessions are exempt from rules that need events from before the connection.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, ClassVar, Final, cast

from msgspec import Struct, field

from jumpseat_testkit.rules import JsonObject, Rules, as_fields

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
# Events that occur only between user.message and session.idle.
_RUN_EVENTS: Final = (
    "assistant.turn_start",
    "assistant.turn_end",
    "assistant.message",
    "assistant.message_start",
    "assistant.message_delta",
    "assistant.streaming_delta",
    "assistant.idle",
    "assistant.reasoning",
    "assistant.reasoning_delta",
    "assistant.tool_call_delta",
    "tool.execution_start",
    "tool.execution_partial_result",
    "tool.execution_progress",
    "tool.execution_complete",
    "external_tool.requested",
)
# Events whose parents must have been announced; servers need not announce the parents of others.
_CHAINED_EVENTS: Final = frozenset({*_RUN_EVENTS, "user.message", "session.idle"})
# Requests of protocol 2, which has no events in their place.
_PROTOCOL_2_REQUESTS: Final = ("tool.call", "permission.request")
_OPENING_METHODS: Final = ("session.create", "session.resume")
# Events that request something of the client, and the events that settle them, matched by requestId.
_SETTLED_BY: Final = {
    "permission.requested": "permission.completed",
    "external_tool.requested": "external_tool.completed",
    "user_input.requested": "user_input.completed",
}
_SETTLING_EVENTS: Final = frozenset(_SETTLED_BY.values())


class _Session(Struct):
    """The observed state of a session.

    ``complete``: observed from its first event on. ``quiet``: the client has sent nothing since ``session.idle``.
    ``cut_short``: the run was aborted or failed.
    """

    complete: bool
    event_ids: set[str] = field(default_factory=set[str])
    running: bool = False
    open_turn: str | None = None
    open_calls: list[str] = field(default_factory=list[str])
    requested_calls: list[str] = field(default_factory=list[str])
    deltas: dict[str, str] = field(default_factory=dict[str, str])
    open_requests: dict[str, str] = field(default_factory=dict[str, str])
    cut_short: bool = False
    message_ids: set[str] = field(default_factory=set[str])
    prompts: int = 0
    idles: int = 0
    quiet: bool = False


class CopilotRules(Rules):
    """Check the messages of one connection, of protocol 2 or 3."""

    NOTIFICATIONS: ClassVar[Collection[str]] = ("session.event", "session.lifecycle")

    def __init__(self) -> None:
        super().__init__()
        self._sessions: dict[str, _Session] = {}
        self._resumed: set[str] = set()
        self._prompts: dict[Any, str] = {}
        # Sessions that the client has opened, and its requests to open one.
        self._opened: set[str] = set()
        self._opening: set[Any] = set()
        self._protocol_2 = False

    @property
    def busy(self) -> list[str]:
        """The ids of the sessions with a prompt that has not reached ``session.idle``."""
        return [
            name for name, session in self._sessions.items() if session.running or session.prompts > session.idles
        ]

    def asks(self, message: Any) -> bool:
        """Decide whether a message or event of the server is a question without an answer so far."""
        params = as_fields(as_fields(message).get("params"))
        request_id = as_fields(as_fields(params.get("event")).get("data")).get("requestId")
        session = self._sessions.get(str(params.get("sessionId")))
        return super().asks(message) or (session is not None and str(request_id) in session.open_requests)

    def sent(self, message: Any) -> None:
        """Record a message of the client."""
        for session in self._sessions.values():
            session.quiet = False
        super().sent(message)

    def on_sent(self, method: str, key: Any, params: JsonObject) -> None:
        """Record a request that opens a session or sends a prompt."""
        session_id = params.get("sessionId")
        if key is None:
            return
        if method in _OPENING_METHODS:
            self._opening.add(key)
            if isinstance(session_id, str):
                self._opened.add(session_id)
        if method == "session.resume" and isinstance(session_id, str):
            self._resumed.add(session_id)
        if method == "session.send" and isinstance(session_id, str):
            self._prompts[key] = session_id
            self._session(session_id).prompts += 1

    def on_request(self, method: str, params: Any) -> list[str]:
        """Notice a client of protocol 2 by its requests."""
        self._protocol_2 = self._protocol_2 or method in _PROTOCOL_2_REQUESTS
        return self.on_notification(method, params)

    def on_notification(self, method: str, params: Any) -> list[str]:
        """Return the violations in an event."""
        return self._check_event(params) if method == "session.event" else []

    def on_response(self, method: str, key: Any, fields: JsonObject) -> list[str]:
        """Record opened sessions and refused prompts."""
        session_id = as_fields(fields.get("result")).get("sessionId")
        if key in self._opening and isinstance(session_id, str):
            self._opened.add(session_id)
        if key in self._prompts and "error" in fields:
            self._session(self._prompts[key]).prompts -= 1
        return []

    def find_unfinished(self) -> list[str]:
        """Return the events and responses missing at the end, and the sessions that the client has not opened."""
        problems = super().find_unfinished()
        if self._opened:
            # A client that has opened no session may be listening to those of other clients.
            unopened = [session_id for session_id in self._sessions if session_id not in self._opened]
            problems += [f"session {name}: events of a session that the client has not opened" for name in unopened]
        for session_id in self.busy:
            problems.append(f"session {session_id}: no session.idle after the last prompt")
        return problems

    # --- events -------------------------------------------------------------------------------------------------

    def _session(self, session_id: str) -> _Session:
        if session_id not in self._sessions:
            self._sessions[session_id] = _Session(complete=session_id not in self._resumed)
        return self._sessions[session_id]

    def _check_event(self, params: Any) -> list[str]:
        if not isinstance(params, dict):
            return ["session.event: expected params to be an object"]
        fields = cast("JsonObject", params)
        session_id, event = fields.get("sessionId"), fields.get("event")
        if not isinstance(session_id, str) or not isinstance(event, dict):
            return ["session.event: expected params with a string sessionId and an object event"]
        session, envelope = self._session(session_id), cast("JsonObject", event)
        kind, data = envelope.get("type"), envelope.get("data")
        if not isinstance(kind, str) or not isinstance(data, dict):
            return [f"session {session_id}: expected an event with a string type and an object data"]
        if kind == "session.resume":
            session.complete = False
        problems = self._check_envelope(session, envelope)
        problems += self._check_order(session, kind, cast("JsonObject", data))
        return [f"{kind}: {problem}" for problem in problems]

    def _check_envelope(self, session: _Session, event: JsonObject) -> list[str]:
        problems: list[str] = []
        event_id, parent, timestamp = event.get("id"), event.get("parentId"), event.get("timestamp")
        if not isinstance(event_id, str) or not event_id:
            problems.append(f"expected the event id to be a non-empty string, got {event_id!r}")
        elif event_id in session.event_ids:
            problems.append(f"the event id {event_id!r} was used by an earlier event")
        else:
            session.event_ids.add(event_id)
        if not isinstance(timestamp, str) or not _TIME.fullmatch(timestamp):
            problems.append(f"expected the timestamp to be an ISO 8601 time, got {timestamp!r}")
        if "parentId" not in event:
            problems.append("the event has no parentId")
        elif (
            parent is not None
            and session.complete
            and event.get("type") in _CHAINED_EVENTS
            and not self._protocol_2
            and parent not in session.event_ids
        ):
            problems.append(f"expected parentId to be the id of an earlier event, got {parent!r}")
        return problems

    def _check_order(self, session: _Session, kind: str, data: JsonObject) -> list[str]:
        problems: list[str] = []
        if kind in _RUN_EVENTS and not session.running and session.complete:
            problems.append("sent after session.idle" if session.idles else "sent before any user.message")
        match kind:
            case "user.message":
                session.running, session.quiet = True, False
            case "assistant.turn_start":
                if session.open_turn is not None:
                    problems.append(f"turn {session.open_turn!r} has not ended")
                session.open_turn = str(data.get("turnId"))
            case "assistant.turn_end":
                if session.open_turn != str(data.get("turnId")) and session.complete:
                    problems.append(f"turn {data.get('turnId')!r} has not begun")
                session.open_turn = None
            case "assistant.message_delta":
                key = str(data.get("messageId"))
                if key in session.message_ids:
                    problems.append("sent after its assistant.message")
                session.deltas[key] = session.deltas.get(key, "") + str(data.get("deltaContent"))
            case "assistant.message":
                problems += self._check_message(session, data)
            case "tool.execution_start":
                session.open_calls.append(str(data.get("toolCallId")))
            case "tool.execution_complete":
                call = str(data.get("toolCallId"))
                if call in session.open_calls:
                    session.open_calls.remove(call)
                    if call in session.requested_calls:
                        session.requested_calls.remove(call)
                elif session.complete:
                    problems.append(
                        f"tool call {call!r} is not running: it was never started or already has a result"
                    )
            case "abort" | "session.error":
                session.cut_short = True
            case "session.idle":
                problems += self._check_idle(session)
            case _:
                problems += _check_request_event(session, kind, data)
        return problems

    def _check_message(self, session: _Session, data: JsonObject) -> list[str]:
        key = str(data.get("messageId"))
        streamed = session.deltas.pop(key, None)
        problems: list[str] = []
        if key in session.message_ids:
            problems.append(f"message {key!r} was already sent")
        session.message_ids.add(key)
        if streamed is not None and streamed != data.get("content"):
            problems.append(f"expected content to equal the joined deltas ({streamed[:60]!r})")
        requests: Any = data.get("toolRequests") or []
        session.requested_calls += [str(cast("JsonObject", request).get("toolCallId")) for request in requests]
        return problems

    def _check_idle(self, session: _Session) -> list[str]:
        problems: list[str] = []
        if session.quiet:
            problems.append("sent twice without a message of the client in between")
        if session.open_turn is not None:
            problems.append(f"turn {session.open_turn!r} has not ended")
        if session.open_calls:
            problems.append(f"tool calls without a result: {', '.join(session.open_calls)}")
        elif session.requested_calls:
            problems.append(f"tool calls that were never run: {', '.join(session.requested_calls)}")
        for request_id, kind in session.open_requests.items():
            problems.append(f"{kind} {request_id!r} without {_SETTLED_BY[kind]}")
        if session.deltas and not session.cut_short:
            problems.append(f"deltas without an assistant.message: {', '.join(session.deltas)}")
        session.running, session.open_turn, session.cut_short = False, None, False
        session.open_requests.clear()
        session.deltas.clear()
        session.open_calls.clear()
        session.requested_calls.clear()
        session.idles += 1
        session.quiet = True
        # One session.idle may end several prompts.
        session.prompts = session.idles = max(session.prompts, session.idles)
        return problems


def _check_request_event(session: _Session, kind: str, data: JsonObject) -> list[str]:
    request_id = str(data.get("requestId"))
    if kind in _SETTLED_BY and not data.get("resolvedByHook"):
        session.open_requests[request_id] = kind
    elif kind in _SETTLING_EVENTS and session.open_requests.pop(request_id, None) is None and session.complete:
        return [f"request {request_id!r} was never made or is already settled"]
    return []
