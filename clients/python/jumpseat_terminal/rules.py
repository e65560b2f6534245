"""Rules of the command line for tool calls, ``shell(git status)`` say. It is the server that judges by them."""

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
    """A rule that cannot be read; the text says what was expected."""


@dataclass(frozen=True, slots=True)
class Rule:
    """``kind`` is one of :data:`KINDS`. Without an argument all of its kind is meant."""

    kind: str
    argument: str | None = None

    def wire(self) -> dict[str, Any]:
        return {"kind": self.kind, "argument": self.argument}


def parse_rule(text: str) -> Rule:
    """Read a rule; the bare name of a tool stands for ``tool(NAME)``.

    Raises:
        RuleError: it is none.
    """
    found = _RULE.fullmatch(text.strip())
    if found is None:
        raise RuleError(f"{text!r} is no rule: expected the name of a tool, or for example shell(git status)")
    kind, argument = found[1], found[2]
    if argument is None:
        return Rule(kind) if kind in KINDS and kind != "tool" else Rule("tool", kind)
    if kind not in KINDS:
        raise RuleError(f"{text!r} is no rule: parentheses go with {', '.join(KINDS)}")
    if not argument.strip():
        raise RuleError(f"{text!r} is no rule: nothing stands in the parentheses")
    return Rule(kind, argument.strip())


def lies_in(path: str, folder: Path) -> bool:
    """Whether a path, once all links are followed, is in ``folder``, which rules without a path mean."""
    return Path(os.path.realpath(folder / path)).is_relative_to(os.path.realpath(folder))


def hidden_tools(deny: Sequence[Rule]) -> list[str]:
    """The tools that are not even offered: those that are denied by their whole names."""
    return [rule.argument for rule in deny if rule.kind == "tool" and rule.argument and "*" not in rule.argument]
