"""Plan mode: which calls it refuses, whatever else allows them."""

from __future__ import annotations

from typing import Final

from jumpseat.agent.permissions.rules import Facts
from jumpseat.agent.session.session import Session
from jumpseat.tools.tool import Tool
from jumpseat_protocol.permissions import (
    McpPermission,
    PermissionRequest,
    ReadPermission,
    ShellPermission,
    UrlPermission,
    WritePermission,
)

PLAN: Final = "plan.md"


def refusal(session: Session, tool: Tool, request: PermissionRequest | None, facts: Facts) -> str | None:
    """Return what the model is told about a call that plan mode refuses; ``None`` if the mode allows the call.

    ``request`` is the permission that the call needs, with its ``facts``.
    """
    if _changes_nothing(session, tool, request, facts):
        return None
    reason = "is not known to only read" if isinstance(request, ShellPermission) else "may change something"
    return (
        f"This call of `{tool.name}` was not run, because the session is in plan mode, and the call {reason}."
        " Explore and plan with calls that only read; changes are made once the user has approved the plan."
    )


def _changes_nothing(session: Session, tool: Tool, request: PermissionRequest | None, facts: Facts) -> bool:
    match request:
        case ReadPermission() | UrlPermission():
            return True
        case ShellPermission():
            return not (facts.writes or facts.opaque or facts.protected)
        case McpPermission():
            return request.read_only
        case WritePermission():
            # The plan is what the mode is for.
            plan = f"{session.storage.shown_path}/{PLAN}"
            return request.file_name == plan and request.resolved_path in (None, plan)
        case _:
            return tool.changes_nothing
