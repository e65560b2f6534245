"""Convert permission questions and their answers between sessions and AHP. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import orjson

from jumpseat.ahp.states.values import Action, JsonObject
from jumpseat.sessions.shown.questions import describe, fenced, session_label
from jumpseat_protocol.permissions import PermissionDecision, PermissionRequest, ShellPermission
from jumpseat_protocol.visible import visible

_ONCE: Final = {"id": "once", "label": "Allow", "kind": "approve"}
_SESSION: Final = {"id": "session", "kind": "approve"}
_REJECT: Final = {"id": "reject", "label": "Reject", "kind": "deny"}

OPTION_OF: Final[Mapping[str, str]] = {
    "approved": "once",
    "approved-for-session": "session",
    "denied-interactively-by-user": "reject",
}
"""The options that lead to the results of questions."""


def options_for(request: PermissionRequest) -> list[JsonObject]:
    """Return the options for the user. Approval for the session is offered only where it is safe."""
    label = session_label(request)
    return [_ONCE, _REJECT] if label is None else [_ONCE, {**_SESSION, "label": label}, _REJECT]


def question_text(request: PermissionRequest, title: str | None) -> tuple[str, str]:
    """Return the title of a question on one line, and its text in Markdown: literal, and in full."""
    described = describe(request, title)
    blocks = [fenced(fact.text, fact.language) for fact in described.facts]
    if described.arguments and not isinstance(request, ShellPermission):
        text = orjson.dumps(described.arguments, option=orjson.OPT_INDENT_2).decode()
        blocks.append(fenced(visible(text), "json"))
    return described.title, "\n\n".join(blocks)


def decision_of(action: Action, request: PermissionRequest) -> PermissionDecision:
    """Return the decision of a ``chat/toolCallConfirmed``."""
    if not action["approved"]:
        feedback = action.get("reasonMessage")
        # Clients have another way to stop a turn.
        return PermissionDecision(
            kind="reject", interrupt=False, feedback=feedback if isinstance(feedback, str) and feedback else None
        )
    if action.get("selectedOptionId") == "session" and session_label(request) is not None:
        return PermissionDecision(kind="approve-for-session")
    return PermissionDecision(kind="approve-once")
