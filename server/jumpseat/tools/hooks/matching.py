"""Decide for which tools a hook command runs, and know the names that other agents have for tools."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Final

from jumpseat.agent.session.hooks import HookCommand

log = logging.getLogger(__name__)

MATCH_S: Final = 0.1
"""Time limit of matching one name."""

OTHER_NAMES: Final[Mapping[str, str]] = {
    "bash": "Bash",
    "view": "Read",
    "create": "Write",
    "edit": "Edit",
    "apply_patch": "Edit",
    "grep": "Grep",
    "glob": "Glob",
    "web_fetch": "WebFetch",
    "web_search": "WebSearch",
    "ask_user": "AskUserQuestion",
    "update_todo": "TodoWrite",
    "task": "Agent",
}
"""The names that other agents have for the tools."""

_LITERAL: Final = re.compile(r"[\w|-]+")


def matches(command: HookCommand, tool_name: str) -> bool:
    """Return whether a command runs for calls of a tool; an invalid pattern, maybe of a guard, fits all."""
    pattern = command.matcher
    if pattern is None or (command.pascal_case and pattern in ("*", "**")):
        return True
    if tool_name == "apply_patch" and any(matches(command, name) for name in ("edit", "create")):
        # It does what these do, and hooks that guard files must not miss it.
        return True
    if not command.pascal_case:
        return _fits(command, pattern, tool_name)
    other_name = OTHER_NAMES.get(tool_name, tool_name)
    if _LITERAL.fullmatch(pattern):
        names = pattern.split("|")
        return tool_name in names or other_name in names or (tool_name == "task" and "Task" in names)
    return _fits(command, pattern, other_name)


def _fits(command: HookCommand, pattern: str, name: str) -> bool:
    # Imported with the first pattern.
    import regex

    try:
        return regex.fullmatch(pattern, name, timeout=MATCH_S) is not None
    except (regex.error, TimeoutError):
        log.warning("the matcher %r of a hook in %s is invalid: it runs for all tools", pattern, command.file)
        return True
