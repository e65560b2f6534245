"""Describe permission requests to the user: everything that a request covers, and nothing else.

Nothing that is approved is cut off, and no text of the model or of a server can pass for another part of the
question. Pure.
"""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import Final
from urllib.parse import urlsplit

from jumpseat_client import PermissionRequest, UnknownPermission
from jumpseat_protocol.permissions import (
    CustomToolPermission,
    HookPermission,
    McpPermission,
    MemoryPermission,
    ReadPermission,
    ShellPermission,
    UrlPermission,
    WritePermission,
)
from jumpseat_protocol.visible import exact_line, visible_url
from jumpseat_terminal.paint import Painter
from jumpseat_terminal.rules import is_inside

LONG: Final = 20
"""Lines of a request from which on its beginning may be out of sight."""

_TITLES: Final = {
    "shell": "Run this command?",
    "write": "Make this change?",
    "read": "Read this?",
    "url": "Open this URL?",
    "memory": "Remember this across sessions?",
}


def question_title(request: PermissionRequest, lines: int) -> str:
    """Return the question for a request that was described in ``lines`` lines."""
    title = _TITLES.get(request.kind, f"Allow this ({exact_line(request.kind)})?")
    return title if lines <= LONG else f"{title} It has {lines} lines; scroll up to see all of them."


def describe(request: PermissionRequest, painter: Painter, folder: Path, tool: str | None) -> str:
    """Render a request of ``tool`` in a session whose working directory is ``folder``."""
    name = tool or request.kind
    match request:
        case ShellPermission():
            about = request.intention if request.intention != request.full_command_text else ""
            return (
                painter.pending_call(name, about)
                + painter.command(request.full_command_text)
                + _warning(request.warning, painter)
            )
        case WritePermission():
            heading = painter.pending_call(name, _shorten_path(request.file_name, folder))
            return (
                heading
                + _target(request.resolved_path, painter)
                + painter.diff(request.diff)
                + _warning(request.warning, painter)
            )
        case ReadPermission():
            heading = painter.pending_call(name, _shorten_path(request.path, folder))
            return heading + _target(request.resolved_path, painter) + _warning(request.warning, painter)
        case UrlPermission():
            via = f"\nredirected from {visible_url(request.redirected_from)}" if request.redirected_from else ""
            return painter.pending_call(name, "") + painter.command(visible_url(request.url) + via)
        case MemoryPermission():
            heading = painter.pending_call(name, f"{request.action} a memory")
            return heading + painter.command(_memory(request)) + _warning(request.warning, painter)
        case HookPermission():
            why = _warning(request.hook_message, painter) + _warning(request.warning, painter)
            return painter.pending_call(request.tool_name, "") + painter.arguments(request.tool_args) + why
        case McpPermission():
            about = f"of the MCP server {request.server_name}"
            heading = painter.pending_call(request.tool_name, about)
            return heading + painter.arguments(request.args) + _warning(request.warning, painter)
        case CustomToolPermission():
            heading = painter.pending_call(request.tool_name, request.tool_description)
            return heading + painter.arguments(request.args) + _warning(request.warning, painter)
        case UnknownPermission():
            return painter.pending_call(name, "") + painter.arguments(request.data)


def _warning(text: str | None, painter: Painter) -> str:
    return painter.warning(text) if text else ""


def approval_scope(request: PermissionRequest, folder: Path) -> str:
    """Describe what an approval beyond this call covers; empty if there is no such approval."""
    match request:
        case ShellPermission():
            return _shell_scope(request) if request.can_offer_session_approval else ""
        case WritePermission():
            target = request.resolved_path or request.file_name
            return _path_scope("changes", target, folder) if request.can_offer_session_approval else ""
        case ReadPermission():
            return _path_scope("reads", request.resolved_path or request.path, folder)
        case UrlPermission():
            return f"all of {visible_url(f'//{_host(request.url)}').removeprefix('//')}"
        case MemoryPermission():
            return "all memories"
        case McpPermission():
            return exact_line(f"{request.tool_name} of {request.server_name}")
        case CustomToolPermission():
            return exact_line(request.tool_name)
        case HookPermission():
            return ""
        case UnknownPermission():
            return exact_line(str(request.data.get("toolName") or ""))


def _shell_scope(request: ShellPermission) -> str:
    """Name the commands that are approved, or the whole line if these are approved only together."""
    if request.request_sandbox_bypass:
        return f"this exact line, outside of the sandbox: {exact_line(request.full_command_text)}"
    if sum(not command.read_only for command in request.commands) > 1:
        return f"this exact line: {exact_line(request.full_command_text)}"
    also = [f"also {request.also_covered}"] if request.also_covered else []
    return exact_line(", ".join([*dict.fromkeys(command.identifier for command in request.commands), *also]))


def _target(resolved: str | None, painter: Painter) -> str:
    return painter.warning(f"leads to {exact_line(resolved)}") if resolved else ""


def _memory(request: MemoryPermission) -> str:
    """Return everything that later sessions would see of a memory, with its scope."""
    scope = request.repo_nwo or "this repository" if request.scope == "repository" else "all folders"
    parts = {
        "": request.fact,
        "subject: ": request.subject,
        "seen in: ": request.citations,
        "because: ": request.reason,
        "vote: ": request.direction,
        "for: ": scope if request.scope else None,
    }
    return "\n".join(f"{name}{exact_line(text)}" for name, text in parts.items() if text)


def _shorten_path(path: str, folder: Path) -> str:
    """Return a path relative to ``folder`` if it is inside."""
    try:
        return str(PurePath(path).relative_to(folder))
    except ValueError:
        return path


def _path_scope(what: str, path: str, folder: Path) -> str:
    """Describe approved paths: the whole folder, and outside of it only ``path`` itself."""
    return f"all {what} in this folder" + ("" if is_inside(path, folder) else f", and {exact_line(path)}")


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
