"""The kinds and the titles of tool calls. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, cast

from jumpseat_protocol.visible import exact_line, on_one_line

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


def kind_of(tool: str) -> ToolKind:
    """Return the kind of a tool."""
    return KINDS.get(tool, "other")


def title_of(tool: str, arguments: Any, intention: str | None) -> str:
    """Return a title of one line: the command of a shell tool, which the user has to judge, else the intention."""
    command = argument(arguments, "command") if kind_of(tool) == "execute" else None
    return on_one_line(f"`{exact_line(command)}`" if command else intention or tool, TITLE_CHARS)


def argument(arguments: Any, name: str) -> str | None:
    """Return an argument that is a string and not empty, or ``None``."""
    value = cast("dict[str, Any]", arguments).get(name) if isinstance(arguments, dict) else None
    return value if isinstance(value, str) and value else None
