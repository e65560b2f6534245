"""Permission rules on the command line, such as ``shell(git status)``. The server applies them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

KINDS: Final = ("shell", "read", "write", "url", "mcp", "memory", "custom-tool", "tool")
_RULE: Final = re.compile(r"([\w.*-]+)(?:\((.*)\))?", re.DOTALL)


class RuleError(ValueError):
    """An invalid rule; the message says what was expected."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule for tool calls. ``kind`` is one of :data:`KINDS`; without an argument it covers the whole kind."""

    kind: str
    argument: str | None = None

    def __str__(self) -> str:
        return self.kind if self.argument is None else f"{self.kind}({self.argument})"

    def wire(self) -> dict[str, Any]:
        return {"kind": self.kind, "argument": self.argument}


def parse_rule(text: str) -> Rule:
    """Parse a rule; the bare name of a tool means ``tool(NAME)``.

    Raises:
        RuleError: the text is not a rule.
    """
    found = _RULE.fullmatch(text.strip())
    if found is None:
        raise RuleError(f"invalid rule {text!r}: expected the name of a tool, or a rule like shell(git status)")
    kind, argument = found[1], found[2]
    if argument is None:
        return Rule(kind) if kind in KINDS and kind != "tool" else Rule("tool", kind)
    if kind not in KINDS:
        raise RuleError(f"invalid rule {text!r}: expected one of {', '.join(KINDS)} before the parentheses")
    if not argument.strip():
        raise RuleError(f"invalid rule {text!r}: the parentheses are empty")
    return Rule(kind, argument.strip())


def is_inside(path: str, folder: Path) -> bool:
    """Return whether ``path``, with symbolic links resolved, is in ``folder``: rules without a path cover these."""
    return Path(os.path.realpath(folder / path)).is_relative_to(os.path.realpath(folder))


_TOOLS: Final = {
    "shell": ("bash", "read_bash", "write_bash", "stop_bash", "list_bash"),
    "read": ("view", "grep", "glob"),
    "write": ("create", "edit", "apply_patch"),
    "url": ("web_fetch", "web_search"),
    "memory": ("store_memory", "vote_memory"),
    "mcp": ("mcp:*",),
    "custom-tool": ("custom:*",),
}


PROVIDED: Final = frozenset(name for names in _TOOLS.values() for name in names) | {"lsp", "tool_search_tool"}
"""Names of built-in tools, some of which a server offers to some models only."""


def hidden_tools(deny: Sequence[Rule]) -> list[str]:
    """Return the tools to leave out of the session: those that are denied as a whole."""
    hidden: list[str] = []
    for rule in deny:
        if rule.argument is None:
            hidden += _TOOLS.get(rule.kind, ())
        elif rule.kind == "tool" and rule.argument == "*":
            hidden += ("builtin:*", "mcp:*", "custom:*")
        elif rule.kind == "tool" and "*" not in rule.argument:
            hidden.append(rule.argument)
    return hidden
