"""Unified diffs, as our tools make them, into the pairs of texts that editors show side by side. Pure.

Editors want the whole of a file before and after: some show the first pair only, and a person is to see all that
they approve. A diff tells its hunks; the rest is what the file holds now, where that is what the diff is about.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final, TypeAlias

Reader: TypeAlias = Callable[[str], str | None]
"""What a file holds now, by its path; ``None`` where that is not known."""

_HUNK: Final = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass(slots=True)
class _Hunk:
    """One hunk: where it begins on both sides, the lines that are still to come, and those that have."""

    name: str
    created: bool
    old_line: int
    line: int
    old_left: int
    new_left: int
    old: list[str] = field(default_factory=list[str])
    new: list[str] = field(default_factory=list[str])
    _last: tuple[list[str], ...] = ()

    def take(self, text: str) -> bool:
        """Take a line of the hunk; ``False`` where it is not one any more."""
        mark, line = text[:1], text[1:] + "\n"
        if mark == "\\":
            # Said of the line before, on whichever side it is.
            for side in self._last:
                side[-1] = side[-1].removesuffix("\n")
            return bool(self._last)
        if (self.old_left, self.new_left) == (0, 0):
            return False
        self._last = {"-": (self.old,), "+": (self.new,)}.get(mark, (self.old, self.new))
        for side in self._last:
            side.append(line)
        self.old_left -= mark != "+"
        self.new_left -= mark != "-"
        return True

    def content(self) -> dict[str, Any]:
        return _content(self.name, None if self.created else "".join(self.old), "".join(self.new))


@dataclass(frozen=True, slots=True)
class Diffs:
    """What is shown of a change: the pairs of texts, and for each hunk where it is."""

    contents: list[dict[str, Any]]
    locations: list[dict[str, Any]]


def diffs_of(unified: str, path: str | None = None, *, read: Reader | None = None, applied: bool = False) -> Diffs:
    """One pair for each file that can be read and is as the diff has it, ``applied`` or not yet; else one for each
    hunk.

    ``path`` is the file's where the caller knows it, for a diff of one file. Nothing where the text is no diff.
    """
    hunks = _hunks(unified, path)
    contents: list[dict[str, Any]] = []
    for name, group in groupby(hunks, key=lambda one: one.name):
        found = list(group)
        text = read(name) if read is not None and not found[0].created else None
        other = _other_side(text, found, applied=applied) if text is not None else None
        if text is None or other is None:
            contents += [one.content() for one in found]
        else:
            contents.append(_content(name, *((other, text) if applied else (text, other))))
    return Diffs(contents, [{"path": one.name, "line": max(1, one.line)} for one in hunks])


def _hunks(unified: str, path: str | None) -> list[_Hunk]:
    hunks: list[_Hunk] = []
    name, created = path or "", False
    current: _Hunk | None = None
    for text in unified.split("\n"):
        if current is not None and current.take(text):
            continue
        current = None
        if text.startswith("--- "):
            created = text == "--- /dev/null"
        elif text.startswith("+++ "):
            name = path or f"/{text[4:].removeprefix('b/').lstrip('/')}"
        elif name and (found := _HUNK.match(text)) is not None:
            old_line, olds, line, news = found.groups(default="1")
            current = _Hunk(name, created, int(old_line), int(line), int(olds), int(news))
            hunks.append(current)
    return hunks


def _other_side(text: str, hunks: list[_Hunk], *, applied: bool) -> str | None:
    """The other text that ``hunks`` make of one; ``None`` where it is not what they are about."""
    # Not splitlines, which knows more ends of lines than diffs do.
    lines = [line for line in re.split(r"(?<=\n)", text) if line]
    made: list[str] = []
    position = 0
    for hunk in hunks:
        here, there = (hunk.new, hunk.old) if applied else (hunk.old, hunk.new)
        # Of no lines, the line before them is told.
        start = (hunk.line if applied else hunk.old_line) - bool(here)
        if start < position or lines[start : start + len(here)] != here:
            return None
        made += [*lines[position:start], *there]
        position = start + len(here)
    return "".join([*made, *lines[position:]])


def _content(path: str, old: str | None, new: str) -> dict[str, Any]:
    content = {"type": "diff", "path": path, "newText": new}
    return content if old is None else {**content, "oldText": old}
