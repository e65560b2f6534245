"""Scripts as somebody writes them who has read ``docs/script.md``: one turn, in each protocol, with any server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_PROMPT: Final = {"sessionId": "${session}", "prompt": [{"type": "text", "text": "go"}]}
_ANSWER: Final = {
    "answer": "session/request_permission",
    "params": {"options": {"$has": [{"optionId": "${yes}", "kind": "allow_once"}]}},
    "result": {"outcome": {"outcome": "selected", "optionId": "${yes}"}},
}
_CHAT: Final = {"channel": "${chat}"}
_BEGIN: Final = {
    "type": "chat/turnStarted",
    "turnId": "t1",
    "startedAt": "2026-01-01T00:00:00Z",
    "message": {"text": "go", "origin": {"kind": "user"}},
}
_CONFIRM: Final = {"type": "chat/toolCallConfirmed", "turnId": "t1", "toolCallId": "${call}", "approved": True}

STEPS: Final[Mapping[str, list[dict[str, Any]]]] = {
    "copilot": [
        {"call": "session.create", "params": {}, "result": {"sessionId": "${session}"}},
        {"call": "session.send", "params": {"sessionId": "${session}", "prompt": "go"}},
        {"events": [{"type": "permission.requested", "data": {"requestId": "${request}"}}]},
        {
            "call": "session.permissions.handlePendingPermissionRequest",
            "params": {
                "sessionId": "${session}",
                "requestId": "${request}",
                "result": {"kind": "approve-once"},
            },
        },
        {"events": ["session.idle"]},
    ],
    "acp-1": [
        {
            "call": "session/new",
            "params": {"cwd": "${folder}", "mcpServers": []},
            "result": {"sessionId": "${session}"},
        },
        {"send": {"id": "p", "method": "session/prompt", "params": _PROMPT}},
        _ANSWER,
        {"expect": {"id": "p", "result": {"stopReason": "end_turn"}}},
    ],
    "acp-2": [
        {"call": "session/new", "params": {"cwd": "${folder}"}, "result": {"sessionId": "${session}"}},
        {"call": "session/prompt", "params": _PROMPT, "result": {"messageId": "<string>"}},
        _ANSWER,
        {"events": [{"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn"}]},
    ],
    "ahp": [
        {"call": "createSession", "params": {"channel": "ahp-session:/s1", "provider": "jumpseat"}},
        {
            "call": "subscribe",
            "params": {"channel": "ahp-session:/s1"},
            "result": {"snapshot": {"state": {"chats": [{"resource": "${chat}"}]}}},
        },
        {"call": "subscribe", "params": _CHAT},
        {"send": {"method": "dispatchAction", "params": {**_CHAT, "clientSeq": 1, "action": _BEGIN}}},
        {"events": [{"type": "chat/toolCallReady", "toolCallId": "${call}", "options": "<list>"}]},
        {"send": {"method": "dispatchAction", "params": {**_CHAT, "clientSeq": 2, "action": _CONFIRM}}},
        {"events": [{"type": "chat/turnComplete", "turnId": "t1"}]},
    ],
}


def one_turn(protocol: str, **head: Any) -> dict[str, Any]:
    """Return the script of a turn."""
    return {"protocol": protocol, "greet": True, **head, "steps": STEPS[protocol]}
