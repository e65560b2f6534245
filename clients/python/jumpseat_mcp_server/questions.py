"""Permission requests as forms for the user of the calling agent."""

from __future__ import annotations

import json
from typing import Any, Final

import mcp.types as types

from jumpseat_client import PermissionRequest, UnknownPermission
from jumpseat_protocol.permissions import (
    PermissionDecision,
    ReadPermission,
    ShellPermission,
    UrlPermission,
    WritePermission,
)
from jumpseat_protocol.safe import exact
from jumpseat_protocol.visible import exact_line, visible_url
from jumpseat_protocol.wire import to_wire

DECISION: Final = "decision"
ALLOW: Final = "allow"
NOBODY: Final = "Nobody could be asked: the calling agent shows no forms. Go on without this call."
DECLINED: Final = "The user does not allow this. Go on without this call."

SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        DECISION: {
            "type": "string",
            "title": "Decision",
            "oneOf": [{"const": ALLOW, "title": "Allow once"}, {"const": "reject", "title": "Reject"}],
        }
    },
    "required": [DECISION],
}


def form_of(request: PermissionRequest) -> types.ElicitRequestFormParams:
    """Return the form for a request, which shows everything that an approval covers."""
    return types.ElicitRequestFormParams(message=text_of(request), requested_schema=SCHEMA)


def text_of(request: PermissionRequest) -> str:
    """Describe a request. No text of a model can pass for another part of the question."""
    match request:
        case ShellPermission():
            return _question("Run this command?", exact(request.full_command_text), request.warning)
        case WritePermission():
            leads = f" (leads to {exact_line(request.resolved_path)})" if request.resolved_path else ""
            heading = f"Change {exact_line(request.file_name)}{leads}?"
            return _question(heading, exact(request.diff), request.warning)
        case ReadPermission():
            leads = f" (leads to {exact_line(request.resolved_path)})" if request.resolved_path else ""
            return f"Read {exact_line(request.path)}{leads}?"
        case UrlPermission():
            return f"Open {visible_url(request.url)}?"
        case UnknownPermission():
            return _question(f"Allow this ({exact_line(request.kind)})?", _json(request.data), None)
        case _:
            return _question(f"Allow this ({request.kind})?", _json(to_wire(request)), None)


def _question(heading: str, content: str, warning: str | None) -> str:
    indented = "\n".join(f"    {line}" for line in content.splitlines())
    return f"{heading}\n\n{indented}" + (f"\n\nWarning: {exact_line(warning)}" if warning else "")


def _json(value: Any) -> str:
    return exact(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def decision_of(answer: types.ElicitResult | None) -> PermissionDecision:
    """Return the decision in an answer; ``None`` is none. Only an accepted form that says so allows anything."""
    if answer is None:
        return PermissionDecision(kind="reject", feedback=NOBODY)
    if answer.action == "accept" and (answer.content or {}).get(DECISION) == ALLOW:
        return PermissionDecision(kind="approve-once")
    return PermissionDecision(kind="reject", feedback=DECLINED)
