"""Convert tool calls for editors: their kind, title, files and changes. Pure."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, cast
from urllib.parse import urlsplit

from jumpseat.acp.translation.content import text_block
from jumpseat.acp.translation.diffs import Diffs, Reader, diffs_of
from jumpseat_protocol import events
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
from jumpseat_protocol.visible import exact_line, on_one_line, visible, visible_url, without_padding

ToolKind: TypeAlias = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"
]

KINDS: Final[Mapping[str, ToolKind]] = {
    "view": "read",
    "show_file": "read",
    "edit": "edit",
    "create": "edit",
    "apply_patch": "edit",
    "str_replace_editor": "edit",
    "delete": "delete",
    "move": "move",
    "grep": "search",
    "rg": "search",
    "glob": "search",
    "web_search": "search",
    "bash": "execute",
    "read_bash": "execute",
    "write_bash": "execute",
    "stop_bash": "execute",
    "list_bash": "execute",
    "web_fetch": "fetch",
    "fetch": "fetch",
    "report_intent": "think",
    "think": "think",
    "exit_plan_mode": "switch_mode",
}
"""The kinds of the built-in tools. All others are ``other``, because their names promise nothing."""

TITLE_CHARS: Final = 200
LANGUAGE: Final = "console"


def kind_of(tool: str) -> ToolKind:
    """Return ACP's kind of a tool."""
    return KINDS.get(tool, "other")


def title_of(tool: str, arguments: Any, intention: str | None) -> str:
    """Return a title of one line: the command of a shell tool, which the user has to judge, else the intention."""
    command = _argument(arguments, "command") if kind_of(tool) == "execute" else None
    return on_one_line(f"`{exact_line(command)}`" if command else intention or tool, TITLE_CHARS)


def start_update(call: events.ToolExecutionStart, cwd: str, intention: str | None) -> dict[str, Any]:
    """Return the ``tool_call`` update of a call that starts."""
    body: dict[str, Any] = {
        "toolCallId": call.tool_call_id,
        "title": title_of(call.tool_name, call.arguments, intention),
        "name": call.tool_name,
        "kind": kind_of(call.tool_name),
        "status": "in_progress",
        "rawInput": call.arguments,
    }
    path = _argument(call.arguments, "path")
    if path is not None and kind_of(call.tool_name) in ("read", "edit", "delete", "move"):
        # Path.expanduser raises for an unknown user.
        location: dict[str, Any] = {"path": os.path.join(cwd, os.path.expanduser(path))}
        if (line := _first_line(call.arguments)) is not None:
            location["line"] = line
        body["locations"] = [location]
    return body


def output(text: str, tool: str) -> list[dict[str, Any]]:
    """Return a tool's output as content. Output of commands is fenced, so that it is not read as Markdown."""
    return _fenced(text, LANGUAGE) if kind_of(tool) == "execute" else [_content(text)]


def _fenced(text: str, language: str = "") -> list[dict[str, Any]]:
    """Return text as content that is not read as Markdown."""
    fence = "```"
    while fence in text:
        fence += "`"
    return [_content(f"{fence}{language}\n{text}\n{fence}")]


def _content(text: str) -> dict[str, Any]:
    return {"type": "content", "content": text_block(text)}


def _to_judge(text: str | None, language: str = "") -> list[dict[str, Any]]:
    """Return a part of a permission question as content: literal, in full, and with all characters visible."""
    return _fenced(without_padding(visible(text)), language) if text else []


def completion_update(
    call: events.ToolExecutionComplete, tool: str, path: str | None, read: Reader | None = None
) -> dict[str, Any]:
    """Return the ``tool_call_update`` of a call that has ended. ``path`` is its file, if it has one."""
    body: dict[str, Any] = {
        "toolCallId": call.tool_call_id,
        "status": "completed" if call.success else "failed",
    }
    result, error = call.result, call.error
    text = result.content if result is not None else error.message if error is not None else ""
    detail = result.detailed_content if result is not None else None
    diffs = diffs_of(detail, path, read=read, applied=True) if detail else Diffs([], [])
    if diffs.contents:
        body["content"], body["locations"] = diffs.contents, diffs.locations
    else:
        # A tool may have its own text for the user.
        shown = text if detail is None or detail.startswith("--- ") else detail
        body["content"] = output(shown, tool) if shown else []
        blocks = map(_binary_block, (result.binary_results_for_llm if result is not None else None) or ())
        body["content"] += [{"type": "content", "content": block} for block in blocks if block is not None]
    if call.effective_arguments is not None:
        body["rawInput"] = call.effective_arguments
    body["rawOutput"] = {"output": text} if error is None else {"error": error.message}
    return body


def _binary_block(result: events.BinaryResult) -> dict[str, Any] | None:
    """Return binary output as a content block, or ``None`` if ACP has no block for it."""
    kind = result.mime_type.partition("/")[0].lower()
    if result.type == "image" or kind in ("image", "audio"):
        block = "audio" if kind == "audio" else "image"
        return {"type": block, "data": result.data, "mimeType": result.mime_type}
    if result.description and urlsplit(result.description).scheme:
        resource = {"uri": result.description, "blob": result.data, "mimeType": result.mime_type}
        return {"type": "resource", "resource": resource}
    return None


def permission_call(
    request: PermissionRequest, call_id: str, title: str | None, read: Reader | None = None
) -> dict[str, Any]:
    """Return the tool call of a permission question, with its changes and locations."""
    body: dict[str, Any] = {"toolCallId": call_id, "status": "pending"}
    match request:
        case ShellPermission():
            body |= {"kind": "execute", "title": title_of("bash", {"command": request.full_command_text}, None)}
            # The command comes first: no description can pass for it.
            about = request.intention if request.intention != request.full_command_text else None
            body["content"] = [
                *_to_judge(request.full_command_text, LANGUAGE),
                *_to_judge(f"Description by the model: {about}" if about else None),
                *_to_judge(request.warning),
            ]
            body["rawInput"] = {"command": request.full_command_text}
        case WritePermission():
            diffs = diffs_of(request.diff, None if request.file_edits else request.file_name, read=read)
            body |= {"kind": "edit", "title": _with_target(request.intention, request.resolved_path)}
            body["content"] = [*(diffs.contents or _to_judge(request.diff)), *_to_judge(request.warning)]
            body["locations"] = diffs.locations or [{"path": request.file_name}]
        case ReadPermission():
            body |= {"kind": "read", "title": _with_target(request.intention, request.resolved_path)}
            body["locations"] = [{"path": request.resolved_path or request.path}]
            body["content"] = _to_judge(f"Read {request.resolved_path or request.path}")
        case McpPermission():
            name = f"{request.tool_name} of the MCP server {request.server_name}"
            body |= {"kind": "other", "title": on_one_line(name, TITLE_CHARS), "rawInput": request.args}
        case UrlPermission():
            body |= {"kind": "fetch", "title": f"{request.intention}: {visible_url(request.url)}"}
            body["rawInput"] = {"url": request.url}
        case MemoryPermission():
            body |= {"kind": "other", "title": title or f"{request.action or 'store'} a memory"}
            body["content"] = _to_judge(_memory(request))
        case CustomToolPermission():
            body |= {"kind": "other", "title": title or request.tool_name, "rawInput": request.args}
            body["content"] = _to_judge(request.tool_description)
        case HookPermission():
            body |= {"kind": kind_of(request.tool_name), "title": title or request.tool_name}
            body["rawInput"] = request.tool_args
            body["content"] = _to_judge(request.hook_message)
    return {name: value for name, value in body.items() if value is not None and value != []}


def _with_target(intention: str, resolved: str | None) -> str:
    """Return the title of a call for a file, with the file that its path leads to."""
    return f"{intention} (leads to {exact_line(resolved)})" if resolved else intention


def _memory(request: MemoryPermission) -> str:
    """Return everything that later sessions would see of a memory, and the model's reason."""
    lines = {
        "Subject": request.subject,
        "Seen in": request.citations,
        "Because": request.reason,
        "Vote": request.direction,
        "Scope": request.repo_nwo or request.scope,
    }
    facts = [exact_line(f"{name}: {text}") for name, text in lines.items() if text]
    return "\n".join([exact_line(request.fact), *facts])


def _argument(arguments: Any, name: str) -> str | None:
    value = cast("dict[str, Any]", arguments).get(name) if isinstance(arguments, dict) else None
    return value if isinstance(value, str) and value else None


def _first_line(arguments: Any) -> int | None:
    view_range: Any = arguments.get("view_range")
    first: Any = cast("list[Any]", view_range)[0] if isinstance(view_range, list) and view_range else None
    return first if isinstance(first, int) and first > 0 else None
