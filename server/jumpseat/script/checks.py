"""The rules of the protocol that hold in every conversation, whatever a script expects.

:class:`Checks` observes all messages of one connection, in both directions, and reports violations. It does no I/O
and knows nothing of scripts, so it can observe any conversation. Resumed sessions are exempt from rules that need
events from before the connection.
"""

from __future__ import annotations

import re
from typing import Any, Final, TypeAlias, cast

from msgspec import Struct, field

JsonObject: TypeAlias = dict[str, Any]

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
_NOTIFICATIONS: Final = ("session.event", "session.lifecycle")
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


class Checks:
    """Check the messages of one connection.

    Pass all messages to :meth:`sent` and :meth:`received` in the order of the conversation. :meth:`received` and
    :meth:`finished` return the violations, one sentence each.
    """

    def __init__(self) -> None:
        # The methods of the client's requests, by id.
        self._requests: dict[Any, str] = {}
        self._answered: set[Any] = set()
        self._server_request_ids: set[Any] = set()
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

    def sent(self, message: Any) -> None:
        """Record a message of the client."""
        for session in self._sessions.values():
            session.quiet = False
        if not isinstance(message, dict):
            return
        fields = cast("JsonObject", message)
        method, params = fields.get("method"), fields.get("params")
        if not isinstance(method, str) or "id" not in fields:
            return
        key = _key(fields["id"])
        self._requests[key] = method
        session_id: Any = cast("JsonObject", params).get("sessionId") if isinstance(params, dict) else None
        if method in _OPENING_METHODS:
            self._opening.add(key)
            if isinstance(session_id, str):
                self._opened.add(session_id)
        if method == "session.resume" and isinstance(session_id, str):
            self._resumed.add(session_id)
        if method == "session.send" and isinstance(session_id, str):
            self._prompts[key] = session_id
            self._session(session_id).prompts += 1

    def received(self, message: Any) -> list[str]:
        """Return the violations in a message of the server."""
        if not isinstance(message, dict):
            return ["expected every message to be a JSON object"]
        fields = cast("JsonObject", message)
        problems = [] if fields.get("jsonrpc") == "2.0" else ['message without "jsonrpc": "2.0"']
        if "method" not in fields:
            return problems + self._check_response(fields)
        method = fields["method"]
        if not isinstance(method, str):
            return [*problems, f"expected the method to be a string, got {method!r}"]
        if "result" in fields or "error" in fields:
            problems.append(f"{method}: a request must not have a result or an error")
        if "id" in fields:
            key = _key(fields["id"])
            if method in _NOTIFICATIONS:
                problems.append(f"{method}: a notification must not have an id")
            if key in self._server_request_ids:
                problems.append(f"{method}: the id {fields['id']!r} was used by an earlier request of the server")
            self._server_request_ids.add(key)
            self._protocol_2 = self._protocol_2 or method in _PROTOCOL_2_REQUESTS
        if method == "session.event":
            problems += self._check_event(fields.get("params"))
        return problems

    def find_unfinished(self) -> list[str]:
        """Return the events and responses missing at the end, and the sessions that the client has not opened."""
        problems = [
            f"request {key[1]!r} ({method}) was never answered"
            for key, method in self._requests.items()
            if key not in self._answered
        ]
        if self._opened:
            # A client that has opened no session may be listening to those of other clients.
            unopened = [session_id for session_id in self._sessions if session_id not in self._opened]
            problems += [f"session {name}: events of a session that the client has not opened" for name in unopened]
        for session_id in self.busy:
            problems.append(f"session {session_id}: no session.idle after the last prompt")
        return problems

    # --- responses ----------------------------------------------------------------------------------------------

    def _check_response(self, fields: JsonObject) -> list[str]:
        if "id" not in fields:
            return ["expected a request, a notification or a response, got a message without method and id"]
        request_id = fields["id"]
        label = f"response to {request_id!r}"
        problems: list[str] = []
        if ("result" in fields) == ("error" in fields):
            problems.append(
                f"{label}: expected a result or an error, got {'both' if 'result' in fields else 'neither'}"
            )
        if "error" in fields:
            problems += _check_error(label, fields["error"])
        key = _key(request_id)
        if request_id is None and "error" in fields:
            # JSON-RPC: the error for a message that could not be parsed has no id.
            return problems
        if key not in self._requests:
            similar = next((other[1] for other in self._requests if str(other[1]) == str(request_id)), None)
            hint = f"; the id {similar!r} was sent, which is of another type" if similar is not None else ""
            problems.append(f"{label}: no request has this id{hint}")
        elif key in self._answered:
            problems.append(f"{label} ({self._requests[key]}): the request was already answered")
        else:
            self._answered.add(key)
            result: Any = cast("JsonObject", fields["result"]) if isinstance(fields.get("result"), dict) else {}
            if key in self._opening and isinstance(result.get("sessionId"), str):
                self._opened.add(result["sessionId"])
            if key in self._prompts and "error" in fields:
                self._session(self._prompts[key]).prompts -= 1
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


def _check_error(label: str, error: Any) -> list[str]:
    fields = cast("JsonObject", error) if isinstance(error, dict) else {}
    code, message = fields.get("code"), fields.get("message")
    if isinstance(code, int) and not isinstance(code, bool) and isinstance(message, str):
        return []
    return [f"{label}: expected an error with an integer code and a string message, got {error!r:.200}"]


def _key(request_id: Any) -> Any:
    """Return ``request_id`` as a hashable key that keeps ``1``, ``"1"`` and ``True`` apart."""
    return (type(request_id).__name__, request_id if isinstance(request_id, int | str) else repr(request_id))
