"""The rules of the Agent Client Protocol, versions 1 and 2, which hold in every conversation.

Sessions that the client has loaded or resumed are exempt from rules that need updates from before the connection.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar, Final

from msgspec import Struct, field

from jumpseat_protocol.json_values import as_list
from jumpseat_testkit.rules import JsonObject, Rules, as_fields

_OPENING: Final = ("session/new", "session/load", "session/resume", "session/fork")
_STOP_REASONS: Final = ("end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled")
_FINAL: Final = ("completed", "failed", "cancelled")
_STATES: Final = ("running", "idle", "requires_action")
# Updates that only a prompt causes.
_OF_A_PROMPT: Final = ("agent_message_chunk", "agent_thought_chunk", "tool_call")


class _Session(Struct):
    """The observed state of a session. ``known``: observed from its beginning, by a client that has created it."""

    known: bool = False
    prompts: int = 0
    state: str = "idle"
    calls: dict[str, str] = field(default_factory=dict[str, str])
    is_cancelled: bool = False


class AcpRules(Rules):
    """What both versions have in common: sessions, their updates, and questions about tool calls."""

    NOTIFICATIONS: ClassVar[Collection[str]] = ("session/update",)

    def __init__(self) -> None:
        super().__init__()
        self._sessions: dict[str, _Session] = {}
        self._opened: set[str] = set()
        # The session of a prompt by the key of its request.
        self._prompts: dict[Any, str] = {}
        self._loading: dict[Any, str] = {}

    def on_sent(self, method: str, key: Any, params: JsonObject) -> None:
        """Record prompts, and requests that open a session."""
        session_id = params.get("sessionId")
        if not isinstance(session_id, str):
            return
        if method in _OPENING and method != "session/fork":
            self._opened.add(session_id)
            self._session(session_id).known = False
            self._loading[key] = session_id
        elif method == "session/prompt" and key is not None:
            self._prompts[key] = session_id
            self._session(session_id).prompts += 1
            self._session(session_id).is_cancelled = False
        elif method == "session/cancel":
            self._session(session_id).is_cancelled = True

    def on_request(self, method: str, params: Any) -> list[str]:
        """Return the violations in a question about a tool call."""
        fields = as_fields(params)
        if method != "session/request_permission":
            return []
        options = fields.get("options")
        ids = [as_fields(option).get("optionId") for option in as_list(options)]
        problems: list[str] = []
        if not ids or not all(isinstance(one, str) for one in ids):
            problems.append(f"{method}: expected options with string optionIds, got {options!r:.200}")
        elif len(set(ids)) < len(ids):
            problems.append(f"{method}: two options have the same optionId")
        return problems + self._check_owner(method, fields)

    def on_notification(self, method: str, params: Any) -> list[str]:
        """Return the violations in an update of a session."""
        if method != "session/update":
            return []
        fields = as_fields(params)
        update = as_fields(fields.get("update"))
        kind, session_id = update.get("sessionUpdate"), fields.get("sessionId")
        if not isinstance(session_id, str) or not isinstance(kind, str):
            return [f"{method}: expected params with a string sessionId and an update with a string sessionUpdate"]
        return [f"{kind}: {problem}" for problem in self.check_update(self._session(session_id), kind, update)]

    def check_update(self, session: _Session, kind: str, update: JsonObject) -> list[str]:
        """Return the violations in an update."""
        del session, kind, update
        return []

    def check_prompt(self, session: _Session, result: JsonObject) -> list[str]:
        """Return the violations in the result of a prompt."""
        del session, result
        return []

    def on_response(self, method: str, key: Any, fields: JsonObject) -> list[str]:
        """Record opened sessions, and return the violations in the result of a prompt."""
        result = as_fields(fields.get("result"))
        self._loading.pop(key, None)
        if method in ("session/new", "session/fork") and "result" in fields:
            session_id = result.get("sessionId")
            if not isinstance(session_id, str):
                return [f"{method}: expected a result with a string sessionId, got {fields['result']!r:.200}"]
            self._opened.add(session_id)
            self._session(session_id).known = method == "session/new"
        if key not in self._prompts:
            return []
        session = self._session(self._prompts[key])
        session.prompts -= 1
        if "error" in fields:
            return []
        return [f"{method}: {problem}" for problem in self.check_prompt(session, result)]

    def find_unfinished(self) -> list[str]:
        """Return what is missing at the end, and the sessions that the client has not opened."""
        unopened = [session_id for session_id in self._sessions if session_id not in self._opened]
        return [
            *super().find_unfinished(),
            *(f"session {name}: updates of a session that the client has not opened" for name in unopened),
        ]

    def _session(self, session_id: str) -> _Session:
        return self._sessions.setdefault(session_id, _Session())

    def _check_owner(self, method: str, fields: JsonObject) -> list[str]:
        session_id = fields.get("sessionId")
        if isinstance(session_id, str) and session_id in self._sessions:
            return []
        return [f"{method}: the client knows no session {session_id!r}"]


class Acp1Rules(AcpRules):
    """Version 1: a prompt ends with its response, and each tool call is announced once."""

    @property
    def busy(self) -> list[str]:
        """The ids of the sessions with a prompt that was not answered."""
        return [name for name, session in self._sessions.items() if session.prompts]

    def check_update(self, session: _Session, kind: str, update: JsonObject) -> list[str]:
        """Return the violations in an update."""
        problems: list[str] = []
        call, status = str(update.get("toolCallId")), str(update.get("status") or "")
        if kind in _OF_A_PROMPT and session.known and not session.prompts:
            problems.append("sent without a prompt, or after its answer")
        if kind == "tool_call":
            if call in session.calls:
                problems.append(f"tool call {call!r} was already announced")
            session.calls[call] = status or "pending"
        elif kind == "tool_call_update":
            before = session.calls.get(call)
            if before is None and session.known:
                problems.append(f"tool call {call!r} was never announced")
            elif before in _FINAL and status and status != before:
                problems.append(f"tool call {call!r} was already {before}")
            session.calls[call] = status or before or "pending"
        return problems

    def check_prompt(self, session: _Session, result: JsonObject) -> list[str]:
        """Return the violations in the result of a prompt."""
        problems: list[str] = []
        reason = result.get("stopReason")
        if reason not in _STOP_REASONS:
            problems.append(f"expected a stopReason, one of {', '.join(_STOP_REASONS)}, got {reason!r}")
        open_calls = [call for call, status in session.calls.items() if status not in _FINAL]
        if open_calls and session.known and not session.prompts and reason != "cancelled":
            problems.append(f"answered, but tool calls have not ended: {', '.join(open_calls)}")
        return problems


class Acp2Rules(AcpRules):
    """Version 2, a draft: a prompt is acknowledged, and ends with the state ``idle``."""

    @property
    def busy(self) -> list[str]:
        """The ids of the sessions with a prompt that was not answered, or that are not idle."""
        return [name for name, session in self._sessions.items() if session.prompts or session.state != "idle"]

    def check_update(self, session: _Session, kind: str, update: JsonObject) -> list[str]:
        """Return the violations in an update."""
        if kind != "state_update":
            return []
        state, reason = update.get("state"), update.get("stopReason")
        if state not in _STATES:
            return [f"expected a state, one of {', '.join(_STATES)}, got {state!r}"]
        session.state = str(state)
        # Vendors may have reasons of their own, which begin with an underscore.
        if reason is None or reason in _STOP_REASONS or str(reason).startswith("_"):
            return []
        return [f"expected a stopReason, one of {', '.join(_STOP_REASONS)}, got {reason!r}"]

    def check_prompt(self, session: _Session, result: JsonObject) -> list[str]:
        """Return the violations in the acknowledgement of a prompt."""
        del session
        message = result.get("messageId")
        return [] if isinstance(message, str) and message else [f"expected a string messageId, got {message!r}"]

    def find_unfinished(self) -> list[str]:
        """Return what is missing at the end, also the state ``idle``."""
        waiting = [name for name, session in self._sessions.items() if session.state != "idle"]
        return [
            *super().find_unfinished(),
            *(f"session {name}: no state_update to idle at the end" for name in waiting),
        ]
