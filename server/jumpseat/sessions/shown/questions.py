"""The facts of permission questions that people have to judge. Pure."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct, field

from jumpseat.sessions.shown.calls import TITLE_CHARS, ToolKind, kind_of, title_of
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

LANGUAGE: Final = "console"
FOR_SESSION: Final = "Allow for this session"


class Fact(Struct, frozen=True):
    """A text that belongs to a question: literal, in full, and with all characters visible, in a ``language``."""

    text: str
    language: str = ""


class Described(Struct, frozen=True):
    """A question: the kind of its call, a title of one line, its facts, and the arguments that show what it does.

    ``paths`` are the files that it is about.
    """

    kind: ToolKind
    title: str
    facts: list[Fact] = field(default_factory=list[Fact])
    arguments: Any = None
    paths: list[str] = field(default_factory=list[str])


def session_label(request: PermissionRequest) -> str | None:
    """Return the label for approving all such calls in the session; ``None`` where that is not safe to offer."""
    match request:
        case ShellPermission():
            also = f", also {request.also_covered}" if request.also_covered else ""
            return f"{FOR_SESSION}{also}" if request.can_offer_session_approval else None
        case WritePermission():
            return FOR_SESSION if request.can_offer_session_approval else None
        case _:
            return FOR_SESSION if request.kind != "hook" else None


def describe(request: PermissionRequest, title: str | None) -> Described:
    """Describe a question. ``title`` is that of its call, for requests that have none of their own."""
    match request:
        case ShellPermission():
            # The command comes first: no description can pass for it.
            about = request.intention if request.intention != request.full_command_text else None
            described = f"Description by the model: {about}" if about else None
            return Described(
                "execute",
                title_of("bash", {"command": request.full_command_text}, None),
                facts((request.full_command_text, LANGUAGE), (described, ""), (request.warning, "")),
                {"command": request.full_command_text},
            )
        case WritePermission():
            named = _with_target(request.intention, request.resolved_path)
            shown = facts((request.diff, "diff"), (request.warning, ""))
            return Described("edit", named, shown, paths=[request.file_name])
        case ReadPermission():
            path = request.resolved_path or request.path
            named = _with_target(request.intention, request.resolved_path)
            return Described("read", named, facts((f"Read {path}", ""), (request.warning, "")), paths=[path])
        case McpPermission():
            name = f"{request.tool_name} of the MCP server {request.server_name}"
            warned = facts((request.warning, ""))
            return Described("other", on_one_line(name, TITLE_CHARS), warned, request.args)
        case UrlPermission():
            named = f"{request.intention}: {visible_url(request.url)}"
            return Described("fetch", named, facts((request.warning, "")), arguments={"url": request.url})
        case MemoryPermission():
            named = title or f"{request.action or 'store'} a memory"
            return Described("other", named, facts((_memory(request), ""), (request.warning, "")))
        case CustomToolPermission():
            shown = facts((request.warning, ""), (request.tool_description, ""))
            return Described("other", title or request.tool_name, shown, request.args)
        case HookPermission():
            shown = facts((request.hook_message, ""), (request.warning, ""))
            return Described(kind_of(request.tool_name), title or request.tool_name, shown, request.tool_args)


def facts(*texts: tuple[str | None, str]) -> list[Fact]:
    """Return the texts that are not empty, each with its language, as facts."""
    return [Fact(without_padding(visible(text)), language) for text, language in texts if text]


def fenced(text: str, language: str = "") -> str:
    """Return a text as a block of Markdown code, longer fences around those that it contains."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"


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
    named = [exact_line(f"{name}: {text}") for name, text in lines.items() if text]
    return "\n".join([exact_line(request.fact), *named])
