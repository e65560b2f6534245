"""Apply the plainest records of a log without decoding them: prompts, answers, and results of tools.

They are most of what a long log has. A record that is not exactly as expected here is left to the caller, who
decodes it; the state of the session is the same either way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, cast, get_args

import orjson

from jumpseat.agent.blocks import AssistantBlock, TextBlock, ToolUseBlock
from jumpseat.agent.session.session import Session
from jumpseat_protocol import events

_PROMPT: Final[Mapping[str, type]] = dict.fromkeys(
    ("content", "messageId", "transformedContent", "interactionId", "turnId", "agentMode", "delivery"), str
)
_ATTRIBUTES: Final = {
    "messageId": "message_id",
    "transformedContent": "transformed_content",
    "interactionId": "interaction_id",
    "turnId": "turn_id",
    "agentMode": "agent_mode",
}
_MODES: Final = (None, *get_args(events.AgentMode))
_DELIVERIES: Final = (None, *get_args(events.Delivery))
_ANSWER: Final[Mapping[str, type]] = {
    "messageId": str,
    "content": str,
    "toolRequests": list,
    "model": str,
    "turnId": str,
    "interactionId": str,
    "outputTokens": int,
    "reasoningText": str,
    "originatingMessageId": str,
}
_CALL: Final[Mapping[str, type]] = {
    "toolCallId": str,
    "name": str,
    "arguments": dict,
    "type": str,
    "intentionSummary": str,
    "mcpServerName": str,
    "mcpToolName": str,
}
_CALL_TYPES: Final = ("function", "custom")
_COMPLETE: Final[Mapping[str, type]] = {
    "toolCallId": str,
    "success": bool,
    "result": dict,
    "toolTelemetry": dict,
    "turnId": str,
    "interactionId": str,
    "sandboxed": bool,
}


class PlainRecords:
    """Applies the plain records of the main agent to ``session``. The caller counts answers and results."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._history = session.history
        self._left: list[Callable[[str], bool]] = []
        self.uncounted: Final[Mapping[str, Callable[[Any], bool]]] = {
            events.AssistantMessage.type: self._apply_answer,
            events.ToolExecutionComplete.type: self._apply_result,
        }
        """Functions that apply the data of an answer or a result if it is plain, and return whether it is."""

    def leave(self, awaits: Callable[[str], bool]) -> None:
        """Leave the results of some calls to the caller: those for whose id ``awaits`` returns true."""
        self._left.append(awaits)

    def apply_prompt(self, event_id: str | None, data: Any) -> bool:
        """Apply a prompt if it is plain, and count it; return whether it is."""
        if type(data) is not dict or not _is_plain(values := cast("dict[str, Any]", data), _PROMPT):
            return False
        if "content" not in values or "messageId" not in values:
            return False
        if values.get("agentMode") not in _MODES or values.get("delivery") not in _DELIVERIES:
            return False
        values = {_ATTRIBUTES.get(name, name): value for name, value in values.items()}
        self._session.apply(event_id, events.UserMessage(**values))
        return True

    def _apply_answer(self, data: Any) -> bool:
        if type(data) is not dict:
            return False
        data = cast("dict[str, Any]", data)
        if "content" not in data or "messageId" not in data or not _is_plain(data, _ANSWER):
            return False
        blocks: list[AssistantBlock] = [TextBlock(data["content"])] if data["content"] else []
        calls: list[ToolUseBlock] = []
        for item in cast("list[Any]", data.get("toolRequests", ())):
            if type(item) is not dict:
                return False
            call = cast("dict[str, Any]", item)
            try:
                call_id, name, arguments = call["toolCallId"], call["name"], call["arguments"]
            except KeyError:
                return False
            kind = call.get("type", "function")
            if kind not in _CALL_TYPES:
                return False
            # Nearly all calls have four members, which need no loop.
            known = len(call) == 4 and type(name) is type(call_id) is type(kind) is str
            if not (known and "type" in call and arguments.__class__ is dict) and not _is_plain(call, _CALL):
                return False
            calls.append(ToolUseBlock(call_id, name, orjson.dumps(arguments).decode(), arguments))
        self._history.answered = True
        self._history.conversation.add_answer([*blocks, *calls], calls, is_final=not calls)
        return True

    def _apply_result(self, data: Any) -> bool:
        try:
            call_id, success, result = data["toolCallId"], data["success"], data["result"]
            text = result["content"]
        except (KeyError, TypeError):
            return False
        if len(result) > 1 or type(text) is not str:
            return False
        # Nearly all results have these four members, which need no loop.
        known = len(data) == 4 and type(success) is bool and type(call_id) is type(data.get("turnId")) is str
        if not (known and type(result) is dict) and not _is_plain(data, _COMPLETE):
            return False
        for awaits in self._left:
            if awaits(call_id):
                return False
        self._history.conversation.settle(call_id, text, success=success)
        return True


def _is_plain(members: dict[str, Any], types: Mapping[str, type]) -> bool:
    """Return whether an object has only members of these names and types."""
    # A generator expression would take twice the time.
    return not [name for name, member in members.items() if types.get(name) is not type(member)]
