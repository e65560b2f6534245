"""Rules of the command line for tool calls: ``shell(git status)``, ``write(src)``, ``url(example.org)``, ``bash``.

A call that a rule denies is denied whatever else is said of it. What allows must cover all of a call, what denies
needs one sign of it, and a command line that could not be taken apart with certainty counts as a sign.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from jumpseat_client import PermissionRequest
from jumpseat_protocol.permissions import ReadPermission, ShellPermission, UrlPermission, WritePermission

KINDS: Final = ("shell", "read", "write", "url", "memory", "custom-tool", "mcp", "hook")
_WITH_DETAIL: Final = ("shell", "read", "write", "url", "tool")
_RULE: Final = re.compile(r"([\w.*-]+)(?:\((.*)\))?", re.DOTALL)


class RuleError(ValueError):
    """A rule that cannot be read; the text says what was expected."""


@dataclass(frozen=True, slots=True)
class Rule:
    """``kind`` is one of :data:`KINDS`, or ``tool`` with the tool's name as ``detail``. No detail means all."""

    kind: str
    detail: str | None = None

    def __str__(self) -> str:
        if self.kind == "tool":
            return self.detail or ""
        return self.kind if self.detail is None else f"{self.kind}({self.detail})"


def parse_rule(text: str) -> Rule:
    """Read a rule.

    Raises:
        RuleError: it is none.
    """
    found = _RULE.fullmatch(text.strip())
    if found is None:
        raise RuleError(f"{text!r} is no rule: expected the name of a tool, or for example shell(git status)")
    name, detail = found[1], found[2]
    if detail is None:
        return Rule(name) if name in KINDS else Rule("tool", name)
    if name not in _WITH_DETAIL:
        raise RuleError(f"{text!r} is no rule: parentheses go with {', '.join(_WITH_DETAIL)}")
    if not detail.strip():
        raise RuleError(f"{text!r} is no rule: nothing stands in the parentheses")
    return Rule(name, " ".join(detail.split()) if name == "shell" else detail.strip())


def allows(rules: Sequence[Rule], request: PermissionRequest, tool: str | None, folder: Path) -> bool:
    """Whether the rules together cover all of the call; ``tool`` is its name, where it is known."""
    if any(_whole(rule, request, tool) for rule in rules):
        return True
    match request:
        case ShellPermission():
            words = [rule.detail for rule in rules if rule.kind == "shell" and rule.detail]
            return (
                request.can_offer_session_approval
                and not request.has_write_file_redirection
                and bool(request.commands)
                and all(any(_begins(one.identifier, start) for start in words) for one in request.commands)
            )
        case _:
            return any(_fits(rule, request, folder) for rule in rules)


def denying(rules: Sequence[Rule], request: PermissionRequest, tool: str | None, folder: Path) -> Rule | None:
    """The first rule that denies the call."""
    for rule in rules:
        if _whole(rule, request, tool) or _fits(rule, request, folder):
            return rule
        if rule.kind == "shell" and rule.detail and isinstance(request, ShellPermission):
            known = [one.identifier for one in request.commands]
            # A line that was not taken apart with certainty may hold what the rule is about.
            if not request.can_offer_session_approval or any(_begins(one, rule.detail) for one in known):
                return rule
    return None


def hidden_tools(deny: Sequence[Rule]) -> list[str]:
    """The tools that are not even offered: those that are denied by their whole names."""
    return [rule.detail for rule in deny if rule.kind == "tool" and rule.detail and "*" not in rule.detail]


def _whole(rule: Rule, request: PermissionRequest, tool: str | None) -> bool:
    """Whether the rule is about all calls of this kind, or of this tool."""
    if rule.kind == "tool":
        return tool is not None and fnmatchcase(tool, rule.detail or "")
    return rule.detail is None and rule.kind == request.kind


def _fits(rule: Rule, request: PermissionRequest, folder: Path) -> bool:
    if rule.detail is None or rule.kind != request.kind:
        return False
    match request:
        case ReadPermission(path=path) | WritePermission(file_name=path):
            return _below(path, rule.detail, folder)
        case UrlPermission():
            try:
                host = urlsplit(request.url).hostname or ""
            except ValueError:
                return False
            return fnmatchcase(host.lower(), rule.detail.lower())
        case _:
            return False


def _begins(identifier: str, start: str) -> bool:
    words = start.split()
    return identifier.split()[: len(words)] == words


def _below(path: str, pattern: str, folder: Path) -> bool:
    """Whether ``path`` is what ``pattern`` names, fits it, or lies below it. Links are followed."""
    wanted = os.path.realpath(folder / os.path.expanduser(pattern))
    actual = os.path.realpath(folder / path)
    return actual == wanted or actual.startswith(wanted.rstrip("/") + "/") or fnmatchcase(actual, wanted)
