"""Convert permission questions and their answers between events and ACP. Pure."""

from __future__ import annotations

from typing import Any, Final

from jumpseat.acp.translation.params import PermissionOutcome
from jumpseat.sessions.shown.questions import session_label
from jumpseat_protocol.permissions import PermissionDecision, PermissionRequest

ONCE: Final = {"optionId": "allow_once", "name": "Allow", "kind": "allow_once"}
ALWAYS: Final = {"optionId": "allow_always", "name": "Allow for this session", "kind": "allow_always"}
NEVER: Final = {"optionId": "reject_once", "name": "Reject", "kind": "reject_once"}


def options_for(request: PermissionRequest) -> list[dict[str, Any]]:
    """Return the options for the user. Approval for the session is offered only where it is safe."""
    label = session_label(request)
    return [ONCE, NEVER] if label is None else [ONCE, {**ALWAYS, "name": label}, NEVER]


def decision_of(outcome: PermissionOutcome) -> PermissionDecision:
    """Return the decision for the user's choice. An unknown option denies."""
    match outcome.outcome, outcome.option_id:
        case "selected", "allow_once":
            return PermissionDecision(kind="approve-once")
        case "selected", "allow_always":
            return PermissionDecision(kind="approve-for-session")
        case "selected", "reject_once":
            # Editors have another way to stop a turn.
            return PermissionDecision(kind="reject", interrupt=False)
        case "cancelled", _:
            return PermissionDecision(kind="cancelled")
        case _:
            return PermissionDecision(kind="user-not-available")
