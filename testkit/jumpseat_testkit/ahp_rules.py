"""The rules of the Agent Host Protocol, which hold in every conversation."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar, Final

from msgspec import Struct, field

from jumpseat_testkit.rules import JsonObject, Rules, as_fields

_ENDINGS: Final = ("chat/turnComplete", "chat/turnCancelled", "chat/error")
# Actions of a turn that need it to be running.
_OF_A_TURN: Final = (
    "chat/delta",
    "chat/reasoning",
    "chat/responsePart",
    "chat/toolCallStart",
    "chat/toolCallDelta",
    "chat/toolCallReady",
)


class _Chat(Struct):
    """The observed state of a chat: the turns that have begun and ended, and the calls of the running one."""

    begun: set[str] = field(default_factory=set[str])
    ended: set[str] = field(default_factory=set[str])
    calls: set[str] = field(default_factory=set[str])
    open_calls: set[str] = field(default_factory=set[str])


class AhpRules(Rules):
    """Check the actions of one connection: their numbers, and turns from their beginning to their end."""

    NOTIFICATIONS: ClassVar[Collection[str]] = ("action",)

    def __init__(self) -> None:
        super().__init__()
        self._last_number = -1
        self._chats: dict[str, _Chat] = {}
        # The calls of chats whose turns this client has begun, and no turns of others.
        self._dispatched: dict[str, set[str]] = {}

    @property
    def busy(self) -> list[str]:
        """The channels of the chats with a turn of the client that has not ended."""
        return [
            channel
            for channel, turns in self._dispatched.items()
            if turns - self._chats.get(channel, _Chat()).ended
        ]

    def on_sent(self, method: str, key: Any, params: JsonObject) -> None:
        """Record the turns that the client begins."""
        action = as_fields(params.get("action"))
        if action.get("type") == "chat/turnStarted":
            self._dispatched.setdefault(str(params.get("channel")), set()).add(str(action.get("turnId")))

    def on_notification(self, method: str, params: Any) -> list[str]:
        """Return the violations in an action."""
        if method != "action":
            return []
        fields = as_fields(params)
        channel, action, number = fields.get("channel"), as_fields(fields.get("action")), fields.get("serverSeq")
        kind = action.get("type")
        if not isinstance(channel, str) or not isinstance(kind, str):
            return ["action: expected params with a string channel and an action with a string type"]
        if not isinstance(number, int) or isinstance(number, bool):
            return [f"{kind}: expected serverSeq to be an integer, got {number!r}"]
        if "rejectionReason" in fields:
            # Refusals carry the number of the last action.
            self._forget(channel, action)
            return []
        problems: list[str] = []
        if number <= self._last_number:
            problems.append(f"expected a serverSeq above {self._last_number}, got {number}")
        self._last_number = max(number, self._last_number)
        problems += _check_turn(self._chats.setdefault(channel, _Chat()), kind, action)
        return [f"{kind}: {problem}" for problem in problems]

    def _forget(self, channel: str, action: JsonObject) -> None:
        self._dispatched.get(channel, set()).discard(str(action.get("turnId")))

    def find_unfinished(self) -> list[str]:
        """Return what is missing at the end, also the ends of turns."""
        return [
            *super().find_unfinished(),
            *(f"{channel}: a turn of the client has not ended" for channel in self.busy),
        ]


def _check_turn(chat: _Chat, kind: str, action: JsonObject) -> list[str]:
    turn, call = str(action.get("turnId")), str(action.get("toolCallId"))
    problems: list[str] = []
    if kind in _OF_A_TURN and turn in chat.ended:
        problems.append(f"turn {turn!r} has ended")
    if kind == "chat/turnStarted":
        if turn in chat.begun:
            problems.append(f"turn {turn!r} was already begun")
        chat.begun.add(turn)
    elif kind == "chat/toolCallStart":
        if call in chat.calls:
            problems.append(f"tool call {call!r} was already begun")
        chat.calls.add(call)
        chat.open_calls.add(call)
    elif kind == "chat/toolCallComplete":
        if call in chat.calls and call not in chat.open_calls:
            problems.append(f"tool call {call!r} was already complete")
        chat.open_calls.discard(call)
    elif kind in _ENDINGS:
        if turn in chat.ended:
            problems.append(f"turn {turn!r} has already ended")
        if kind == "chat/turnComplete" and turn in chat.begun and chat.open_calls:
            problems.append(f"tool calls that are not complete: {', '.join(sorted(chat.open_calls))}")
        chat.ended.add(turn)
        chat.open_calls.clear()
    return problems
