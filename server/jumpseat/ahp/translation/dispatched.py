"""The actions that clients may dispatch, and the members that these need. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from jumpseat.ahp.states.values import JsonObject
from jumpseat.ahp.translation.limits import excess_of

ACTIONS: Final[Mapping[str, Mapping[str, type]]] = {
    "root/configChanged": {"config": dict},
    "session/defaultChatChanged": {},
    "session/titleChanged": {"title": str},
    "session/isReadChanged": {"isRead": bool},
    "session/isArchivedChanged": {"isArchived": bool},
    "session/configChanged": {"config": dict},
    "session/activeClientSet": {"activeClient": dict},
    "session/activeClientRemoved": {"clientId": str},
    "session/customizationToggled": {"id": str, "enablement": list},
    "session/mcpServerStartRequested": {"id": str},
    "session/mcpServerStopRequested": {"id": str},
    "session/mcpServerBackgroundRequested": {"id": str},
    "session/workingDirectorySet": {"directory": str},
    "session/workingDirectoryRemoved": {"directory": str},
    "session/workingDirectoryReplaced": {"directory": str, "replacement": str},
    "chat/turnStarted": {"turnId": str, "startedAt": str, "message": dict},
    "chat/turnCancelled": {"turnId": str},
    "chat/turnResume": {"turnId": str},
    "chat/toolCallConfirmed": {"turnId": str, "toolCallId": str, "approved": bool},
    "chat/toolCallContentChanged": {"turnId": str, "toolCallId": str, "content": list},
    "chat/toolCallComplete": {"turnId": str, "toolCallId": str, "result": dict},
    "chat/toolCallResultConfirmed": {"turnId": str, "toolCallId": str, "approved": bool},
    "chat/inputAnswerChanged": {"requestId": str, "questionId": str},
    "chat/inputCompleted": {"requestId": str, "response": str},
    "chat/pendingMessageSet": {"kind": str, "id": str, "message": dict},
    "chat/pendingMessageRemoved": {"kind": str, "id": str},
    "chat/queuedMessagesReordered": {"order": list},
    "chat/draftChanged": {},
    "chat/isReadChanged": {"isRead": bool},
    "chat/isArchivedChanged": {"isArchived": bool},
    "chat/truncated": {},
    "chat/workingDirectorySet": {"directory": str},
    "chat/workingDirectoryRemoved": {"directory": str},
}
"""The actions of clients, with the members that they need."""


def problem_of(action: Any) -> str | None:
    """Return why an action cannot be one of a client, or ``None``."""
    if not isinstance(action, dict) or not isinstance(kind := cast("JsonObject", action).get("type"), str):
        return "an action is an object with a string 'type'"
    members = cast("JsonObject", action)
    if (needed := ACTIONS.get(kind)) is None:
        return f"{kind[:100]!r} is not an action of clients"
    if (excess := excess_of(action)) is not None:
        return excess
    for name, expected in needed.items():
        if not isinstance(members.get(name), expected):
            return f"{name!r} is missing or has the wrong type"
    if needed.get("message") is not None:
        return _problem_of_message(members["message"])
    return None


def _problem_of_message(message: JsonObject) -> str | None:
    origin: Any = message.get("origin")
    if not isinstance(message.get("text"), str):
        return "'message.text' is missing or not a string"
    if not isinstance(origin, dict) or cast("JsonObject", origin).get("kind") != "user":
        return "clients send messages of the kind 'user' only"
    attachments: Any = message.get("attachments")
    if attachments is not None and not (
        isinstance(attachments, list) and all(isinstance(one, dict) for one in cast("list[Any]", attachments))
    ):
        return "'message.attachments' is not an array of objects"
    return None
