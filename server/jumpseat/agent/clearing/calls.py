"""The files that tool calls have read and changed, and the line that replaces a cleared result."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from jumpseat.agent.blocks import ToolResultBlock, ToolUseBlock

CONTINUING: Final = frozenset(
    {"apply_patch", "ask_user", "create", "edit", "read_agent", "read_bash", "task", "write_agent", "write_bash"}
)
"""Tools whose second result, after a call with the same arguments, does not replace the first one."""

MAX_SUBJECT: Final = 120
"""The most characters of a path, a command or other arguments in the line for a cleared result."""

_PATCHED: Final = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to):(.*)$", re.MULTILINE)


class Reading(Struct, frozen=True):
    """The input of a call: a ``source``, and of a file the lines from ``first`` to ``last``, or to the end."""

    source: tuple[str, str]
    first: int = 1
    last: int | None = None

    def is_covered_by(self, later: Reading) -> bool:
        """Return whether a later call has read the same or more."""
        if self.source != later.source or later.first > self.first:
            return False
        return later.last is None or (self.last is not None and self.last <= later.last)


def reading_of(call: ToolUseBlock, cwd: str) -> Reading | None:
    """Return what a call reads; ``None`` if no later call can replace its result."""
    arguments = call.arguments
    if arguments is None or call.name in CONTINUING:
        return None
    if call.name == "view" and isinstance(path := arguments.get("path"), str):
        return Reading(("file", resolved(path, cwd)), *_lines(arguments.get("view_range")))
    if call.name == "bash":
        return Reading((call.name, str(arguments.get("command", "")).strip()))
    places = {name: resolved(value, cwd) for name, value in arguments.items() if _is_place(name, value)}
    return Reading((call.name, _text_of({**arguments, **places})))


def changed_by(call: ToolUseBlock, cwd: str) -> list[str]:
    """Return the paths of the files that a call changes if it succeeds; those of commands are not known."""
    arguments = call.arguments or {}
    match call.name:
        case "edit" | "create":
            path = arguments.get("path")
            return [resolved(path, cwd)] if isinstance(path, str) else []
        case "apply_patch":
            return [resolved(path.strip(), cwd) for path in _PATCHED.findall(str(arguments.get("input", "")))]
        case _:
            return []


def resolved(path: str, cwd: str) -> str:
    """Return a path in one form, so that calls can be compared."""
    path, cwd = path.replace("\\", "/"), cwd.replace("\\", "/")
    return posixpath.normpath(posixpath.join(cwd, path))


def _is_place(name: str, value: Any) -> bool:
    return name == "path" and isinstance(value, str)


def _lines(view_range: Any) -> tuple[int, int | None]:
    match view_range:
        case [int(first), int(last)]:
            return first, None if last < 0 else last
        case _:
            return 1, None


def _text_of(arguments: Mapping[str, Any]) -> str:
    # Arguments may have integers beyond 64 bits.
    return json.dumps(arguments, sort_keys=True)


def note_for(call: ToolUseBlock, result: ToolResultBlock, reason: str, saved: str | None = None) -> str:
    """Return the line that replaces a result: the call, what it was, and how to see it again.

    ``saved`` is the file that has the result.
    """
    pictures = f", {len(result.images)} pictures" if result.images else ""
    how = f"saved as {saved}" if saved is not None else f"call {call.name} again if needed"
    what = f"{call.name} {_subject(call)}, {len(result.text):,} characters{pictures}"
    return f"[Cleared: {what}; {reason}: {how}]"


def _subject(call: ToolUseBlock) -> str:
    arguments = call.arguments or {}
    match arguments:
        case {"path": str(path), "view_range": [int(first), int(last)]}:
            return f"{_short(path)} lines {_short(str(first))}-{_short(str(last)) if last >= 0 else 'end'}"
        case {"command": str(text)} | {"pattern": str(text), "path": str("." | "")}:
            return _short(text)
        case {"pattern": str(pattern), "path": str(path)}:
            return f"{_short(pattern)} in {_short(path)}"
        case {"pattern": str(text)} | {"path": str(text)}:
            return _short(text)
        case _:
            return _short(_text_of(arguments))


def _short(text: str) -> str:
    line = " ".join(text[: 4 * MAX_SUBJECT].split())
    line = line if len(line) <= MAX_SUBJECT else f"{line[:MAX_SUBJECT]}..."
    return line.encode("utf-8", "replace").decode()
