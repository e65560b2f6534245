"""What always holds in this protocol, whatever a script expects: the rules that a broken server breaks.

:class:`Checks` hears every message of one connection, in both directions, and says what is wrong with it. It does
no I/O and knows nothing of scripts, so that it can listen to any conversation. What began before the connection did
(a session that was resumed) is not held against the server.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

JsonObject: TypeAlias = dict[str, Any]

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
# What only happens while a prompt runs; the message of the user is the first of it.
_OF_A_RUN: Final = (
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
# Servers may keep events of other kinds to themselves.
_CHAINED: Final = frozenset({*_OF_A_RUN, "user.message", "session.idle"})
# Requests of protocol 2, which has no events for what they ask.
_OLDER: Final = ("tool.call", "permission.request")
_OPENS: Final = ("session.create", "session.resume")
_NOTIFICATIONS: Final = ("session.event", "session.lifecycle")
# What is asked, and what tells that it is settled: by the same requestId.
_ASKS: Final = {
    "permission.requested": "permission.completed",
    "external_tool.requested": "external_tool.completed",
    "user_input.requested": "user_input.completed",
}
_SETTLES: Final = {settles: asks for asks, settles in _ASKS.items()}


@dataclass(slots=True)
class _Session:
    """What is known of a session.

    ``whole`` tells that it was heard from its first event on, ``quiet`` that nothing was asked since it was idle,
    ``cut_short`` that the run was aborted or has failed.
    """

    whole: bool
    event_ids: set[str] = field(default_factory=set[str])
    running: bool = False
    open_turn: str | None = None
    open_calls: list[str] = field(default_factory=list[str])
    asked_calls: list[str] = field(default_factory=list[str])
    shown: dict[str, str] = field(default_factory=dict[str, str])
    open_questions: dict[str, str] = field(default_factory=dict[str, str])
    cut_short: bool = False
    said: set[str] = field(default_factory=set[str])
    prompts: int = 0
    idles: int = 0
    quiet: bool = False


class Checks:
    """The rules, over one connection.

    :meth:`sent` and :meth:`received` take the messages in their order and return what is wrong, one sentence each;
    :meth:`finished` what is missing at the end.
    """

    def __init__(self) -> None:
        # Requests of ours, by id: the method, and whether it is answered.
        self._asked: dict[Any, str] = {}
        self._answered: set[Any] = set()
        self._asked_of_us: set[Any] = set()
        self._sessions: dict[str, _Session] = {}
        self._resumed: set[str] = set()
        self._prompts: dict[Any, str] = {}
        # The sessions that the client has opened, and the requests that open more.
        self._opened: set[str] = set()
        self._opening: set[Any] = set()
        self._older_protocol = False

    @property
    def busy(self) -> list[str]:
        """The sessions whose prompts have not come to their end."""
        return [session_id for session_id, one in self._sessions.items() if one.running or one.prompts > one.idles]

    def sent(self, message: Any) -> None:
        """Hear what the client has sent."""
        for session in self._sessions.values():
            session.quiet = False
        if not isinstance(message, dict):
            return
        said = cast("JsonObject", message)
        method, params = said.get("method"), said.get("params")
        if not isinstance(method, str) or "id" not in said:
            return
        self._asked[_key(said["id"])] = method
        target: Any = cast("JsonObject", params).get("sessionId") if isinstance(params, dict) else None
        if method in _OPENS:
            self._opening.add(_key(said["id"]))
            if isinstance(target, str):
                self._opened.add(target)
        if method == "session.resume" and isinstance(target, str):
            self._resumed.add(target)
        if method == "session.send" and isinstance(target, str):
            self._prompts[_key(said["id"])] = target
            self._of(target).prompts += 1

    def received(self, message: Any) -> list[str]:
        """Hear what the server has sent."""
        if not isinstance(message, dict):
            return ["a message is not a JSON object"]
        said = cast("JsonObject", message)
        problems = [] if said.get("jsonrpc") == "2.0" else ['a message without "jsonrpc": "2.0"']
        if "method" not in said:
            return problems + self._answer(said)
        if not isinstance(said["method"], str):
            return [*problems, "a method that is not a text"]
        if "result" in said or "error" in said:
            problems.append(f"{said['method']}: a request that is an answer too")
        if "id" in said:
            if said["method"] in _NOTIFICATIONS:
                problems.append(f"{said['method']}: a notification has no id, which asks for an answer")
            if _key(said["id"]) in self._asked_of_us:
                problems.append(f"{said['method']}: the id {said['id']!r} of an earlier request of the server")
            self._asked_of_us.add(_key(said["id"]))
            self._older_protocol = self._older_protocol or said["method"] in _OLDER
        if said["method"] == "session.event":
            problems += self._event(said.get("params"))
        return problems

    def finished(self) -> list[str]:
        """What never came."""
        problems = [
            f"the request {key[1]!r} ({method}) was never answered"
            for key, method in self._asked.items()
            if key not in self._answered
        ]
        if self._opened:
            # Who has opened none on this connection may be listening to those of others.
            strangers = [session_id for session_id in self._sessions if session_id not in self._opened]
            problems += [f"session {one}: events of a session that nobody has opened" for one in strangers]
        for session_id in self.busy:
            problems.append(f"session {session_id}: no session.idle after its last prompt")
        return problems

    # --- answers ------------------------------------------------------------------------------------------------

    def _answer(self, said: JsonObject) -> list[str]:
        if "id" not in said:
            return ["a message that is neither a request nor an answer"]
        request_id = said["id"]
        problems: list[str] = []
        if ("result" in said) == ("error" in said):
            both = "both a result and an error" if "result" in said else "neither a result nor an error"
            problems.append(f"the answer to {request_id!r} has {both}")
        if "error" in said:
            problems += _error(request_id, said["error"])
        key = _key(request_id)
        if request_id is None and "error" in said:
            # What could not be read has no id.
            return problems
        if key not in self._asked:
            alike = next((one[1] for one in self._asked if str(one[1]) == str(request_id)), None)
            hint = f"; {alike!r} was, which is another type" if alike is not None else ""
            problems.append(f"an answer to {request_id!r}, which was not asked{hint}")
        elif key in self._answered:
            problems.append(f"a second answer to {request_id!r} ({self._asked[key]})")
        else:
            self._answered.add(key)
            opened: Any = cast("JsonObject", said["result"]) if isinstance(said.get("result"), dict) else {}
            if key in self._opening and isinstance(opened.get("sessionId"), str):
                self._opened.add(opened["sessionId"])
            if key in self._prompts and "error" in said:
                self._of(self._prompts[key]).prompts -= 1
        return problems

    # --- events -------------------------------------------------------------------------------------------------

    def _of(self, session_id: str) -> _Session:
        if session_id not in self._sessions:
            self._sessions[session_id] = _Session(whole=session_id not in self._resumed)
        return self._sessions[session_id]

    def _event(self, params: Any) -> list[str]:
        if not isinstance(params, dict):
            return ["session.event without params"]
        told = cast("JsonObject", params)
        session_id, event = told.get("sessionId"), told.get("event")
        if not isinstance(session_id, str) or not isinstance(event, dict):
            return ["session.event without sessionId or event"]
        session, one = self._of(session_id), cast("JsonObject", event)
        kind, data = one.get("type"), one.get("data")
        if not isinstance(kind, str) or not isinstance(data, dict):
            return [f"session {session_id}: an event without type or data"]
        if kind == "session.resume":
            session.whole = False
        problems = self._envelope(session, one)
        problems += self._order(session, kind, cast("JsonObject", data))
        return [f"{kind}: {problem}" for problem in problems]

    def _envelope(self, session: _Session, event: JsonObject) -> list[str]:
        problems: list[str] = []
        event_id, parent = event.get("id"), event.get("parentId")
        if not isinstance(event_id, str) or not event_id:
            problems.append("an event without id")
        elif event_id in session.event_ids:
            problems.append(f"the id {event_id} of an earlier event")
        else:
            session.event_ids.add(event_id)
        if not isinstance(event.get("timestamp"), str) or not _TIME.fullmatch(event["timestamp"]):
            problems.append(f"the timestamp {event.get('timestamp')!r}, which is no ISO 8601 time")
        if "parentId" not in event:
            problems.append("an event without parentId")
        elif (
            parent is not None
            and session.whole
            and event.get("type") in _CHAINED
            and not self._older_protocol
            and parent not in session.event_ids
        ):
            problems.append(f"the parent {parent!r}, which is no event that was announced before")
        return problems

    def _order(self, session: _Session, kind: str, data: JsonObject) -> list[str]:
        problems: list[str] = []
        if kind in _OF_A_RUN and not session.running and session.whole:
            after = "after session.idle" if session.idles else "before any message of the user"
            problems.append(f"comes {after}")
        match kind:
            case "user.message":
                session.running, session.quiet = True, False
            case "assistant.turn_start":
                if session.open_turn is not None:
                    problems.append(f"the turn {session.open_turn!r} has not ended")
                session.open_turn = str(data.get("turnId"))
            case "assistant.turn_end":
                if session.open_turn != str(data.get("turnId")) and session.whole:
                    problems.append(f"the turn {data.get('turnId')!r} has not begun")
                session.open_turn = None
            case "assistant.message_delta":
                key = str(data.get("messageId"))
                if key in session.said:
                    problems.append("comes after its assistant.message")
                session.shown[key] = session.shown.get(key, "") + str(data.get("deltaContent"))
            case "assistant.message":
                problems += self._message(session, data)
            case "tool.execution_start":
                session.open_calls.append(str(data.get("toolCallId")))
            case "tool.execution_complete":
                call = str(data.get("toolCallId"))
                if call in session.open_calls:
                    session.open_calls.remove(call)
                    if call in session.asked_calls:
                        session.asked_calls.remove(call)
                elif session.whole:
                    problems.append(f"the call {call!r} is not open: it was not started, or has its result")
            case "abort" | "session.error":
                session.cut_short = True
            case "session.idle":
                problems += self._idle(session)
            case _:
                problems += _question(session, kind, data)
        return problems

    def _message(self, session: _Session, data: JsonObject) -> list[str]:
        key = str(data.get("messageId"))
        shown = session.shown.pop(key, None)
        problems: list[str] = []
        if key in session.said:
            problems.append(f"the message {key} was said before")
        session.said.add(key)
        if shown is not None and shown != data.get("content"):
            problems.append(f"its text is not what its deltas said ({shown[:60]!r})")
        requests: Any = data.get("toolRequests") or []
        session.asked_calls += [str(cast("JsonObject", one).get("toolCallId")) for one in requests]
        return problems

    def _idle(self, session: _Session) -> list[str]:
        problems: list[str] = []
        if session.quiet:
            problems.append("comes a second time, without anything asked in between")
        if session.open_turn is not None:
            problems.append(f"the turn {session.open_turn!r} has not ended")
        if session.open_calls:
            problems.append(f"calls without a result: {', '.join(session.open_calls)}")
        elif session.asked_calls:
            problems.append(f"calls that were never run: {', '.join(session.asked_calls)}")
        for request_id, kind in session.open_questions.items():
            problems.append(f"{kind} {request_id} without its {_ASKS[kind]}")
        if session.shown and not session.cut_short:
            problems.append(f"deltas without their assistant.message: {', '.join(session.shown)}")
        session.running, session.open_turn, session.cut_short = False, None, False
        session.open_questions.clear()
        session.shown.clear()
        session.open_calls.clear()
        session.asked_calls.clear()
        session.idles += 1
        session.quiet = True
        # One idle may end several prompts.
        session.prompts = session.idles = max(session.prompts, session.idles)
        return problems


def _question(session: _Session, kind: str, data: JsonObject) -> list[str]:
    request_id = str(data.get("requestId"))
    if kind in _ASKS and not data.get("resolvedByHook"):
        session.open_questions[request_id] = kind
    elif kind in _SETTLES and session.open_questions.pop(request_id, None) is None and session.whole:
        return [f"{request_id!r} was not asked, or is settled already"]
    return []


def _error(request_id: Any, error: Any) -> list[str]:
    fields = cast("JsonObject", error) if isinstance(error, dict) else {}
    code, message = fields.get("code"), fields.get("message")
    if isinstance(code, int) and not isinstance(code, bool) and isinstance(message, str):
        return []
    return [f"the answer to {request_id!r} has an error without a code (a whole number) and a message"]


def _key(request_id: Any) -> Any:
    """An id as a key: ``1``, ``"1"`` and ``True`` are three."""
    return (type(request_id).__name__, request_id if isinstance(request_id, int | str) else repr(request_id))
