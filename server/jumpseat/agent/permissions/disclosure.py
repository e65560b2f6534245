"""Complete a permission request for the person who decides, with the targets of paths and with warnings.

Descriptions of a call are written by the model or by an MCP server. They are reduced to one visible line, so that
they cannot imitate other parts of the question. The command, path, URL and arguments of a call remain unchanged,
because clients compare them and because they take effect unchanged; a warning names characters that hide something.
"""

from __future__ import annotations

from typing import Final

from jumpseat.agent.permissions.rules import Facts
from jumpseat_protocol.permissions import (
    CustomToolPermission,
    HookPermission,
    McpPermission,
    MemoryPermission,
    PermissionRequest,
    ReadPermission,
    ShellPermission,
    UrlPermission,
    WritePermission,
)
from jumpseat_protocol.visible import deceptive_characters, exact_line, has_hidden_parts, on_one_line, visible_url

MAX_SHOWN_PATHS: Final = 5


def disclose(request: PermissionRequest, facts: Facts) -> None:
    """Add real targets and warnings to ``request``, and reduce its descriptions to one line."""
    match request:
        case ReadPermission(path=named) | WritePermission(file_name=named):
            (path,) = facts.paths or (None,)
            request.resolved_path = path.real if path is not None and path.real != named else None
            request.intention = exact_line(request.intention)
        case ShellPermission():
            if request.intention != request.full_command_text:
                request.intention = on_one_line(request.intention)
            warnings = [request.warning] if request.warning else []
            request.warning = on_one_line(". ".join([*warnings, *_warnings(request, facts)])) or None
        case UrlPermission():
            shown = visible_url(request.url)
            request.intention = on_one_line(request.intention) if shown == request.url else f"Open {shown}"
        case McpPermission():
            request.tool_title = on_one_line(request.tool_title)
        case MemoryPermission() | CustomToolPermission() | HookPermission():
            pass


def _warnings(request: ShellPermission, facts: Facts) -> list[str]:
    text = request.full_command_text
    warnings: list[str] = []
    hidden = list(dict.fromkeys(path.real for path in facts.outside_paths if path.real not in text))
    if hidden:
        shown = ", ".join(hidden[:MAX_SHOWN_PATHS]) + (", …" if len(hidden) > MAX_SHOWN_PATHS else "")
        warnings.append(f"May reach outside of the session's folders: {shown}")
    if characters := deceptive_characters(text):
        warnings.append(f"Contains characters that are invisible or imitate others: {', '.join(characters)}")
    if has_hidden_parts(text):
        warnings.append("Long white space may push a part of the command out of sight")
    return warnings
