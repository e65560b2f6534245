"""Convert tool calls for editors: their kind, title, files and changes. Pure."""

from __future__ import annotations

import os
from typing import Any, cast
from urllib.parse import urlsplit

from jumpseat.acp.translation.content import text_block
from jumpseat.acp.translation.diffs import Diffs, Reader, Renderer, diffs_of
from jumpseat.sessions.shown.calls import argument, kind_of, title_of
from jumpseat.sessions.shown.questions import LANGUAGE, describe, fenced
from jumpseat_protocol import events
from jumpseat_protocol.permissions import (
    PermissionRequest,
    WritePermission,
)


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
    path = argument(call.arguments, "path")
    if path is not None and kind_of(call.tool_name) in ("read", "edit", "delete", "move"):
        # Path.expanduser raises for an unknown user.
        location: dict[str, Any] = {"path": os.path.join(cwd, os.path.expanduser(path))}
        if (line := _first_line(call.arguments)) is not None:
            location["line"] = line
        body["locations"] = [location]
    return body


def output(text: str, tool: str) -> list[dict[str, Any]]:
    """Return a tool's output as content. Output of commands is fenced, so that it is not read as Markdown."""
    return [_content(fenced(text, LANGUAGE))] if kind_of(tool) == "execute" else [_content(text)]


def _content(text: str) -> dict[str, Any]:
    return {"type": "content", "content": text_block(text)}


def completion_update(
    call: events.ToolExecutionComplete,
    tool: str,
    path: str | None,
    read: Reader | None = None,
    render: Renderer = diffs_of,
) -> dict[str, Any]:
    """Return the ``tool_call_update`` of a call that has ended. ``path`` is its file, if it has one."""
    body: dict[str, Any] = {
        "toolCallId": call.tool_call_id,
        "status": "completed" if call.success else "failed",
    }
    result, error = call.result, call.error
    text = result.content if result is not None else error.message if error is not None else ""
    detail = result.detailed_content if result is not None else None
    diffs = render(detail, path, read=read, applied=True) if detail else Diffs([], [])
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
    request: PermissionRequest,
    call_id: str,
    title: str | None,
    read: Reader | None = None,
    render: Renderer = diffs_of,
) -> dict[str, Any]:
    """Return the tool call of a permission question, with its changes and locations."""
    body: dict[str, Any] = {"toolCallId": call_id, "status": "pending"}
    described = describe(request, title)
    body |= {"kind": described.kind, "title": described.title, "rawInput": described.arguments}
    facts = described.facts
    if isinstance(request, WritePermission):
        diffs = render(request.diff, None if request.file_edits else request.file_name, read=read)
        body["locations"] = diffs.locations
        if diffs.contents:
            # In the place of the unified diff.
            body["content"], facts = diffs.contents, facts[1:]
    body["content"] = [*body.get("content", ()), *(_content(fenced(fact.text, fact.language)) for fact in facts)]
    body["locations"] = body.get("locations") or [{"path": path} for path in described.paths]
    return {name: value for name, value in body.items() if value is not None and value != []}


def _first_line(arguments: Any) -> int | None:
    view_range: Any = arguments.get("view_range")
    first: Any = cast("list[Any]", view_range)[0] if isinstance(view_range, list) and view_range else None
    return first if isinstance(first, int) and first > 0 else None
