"""The diagnostics that a change has brought: pure functions.

A diagnostic that was there before is recognized by its message and its place, which lines that were inserted or
deleted above it have moved.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

_PLACES: Final = re.compile(r"(?<=line )\d+|(?<=:)\d+")
"""Line numbers in messages, which change with the lines above."""

_WORD: Final = re.compile(r"\w+")


class Diagnostic(Struct, frozen=True):
    """A finding of a server. ``line`` and ``character``, in UTF-16 units, count from 0. Severity 1 is an error."""

    line: int
    character: int
    message: str
    severity: int = 1
    source: str = ""
    code: str = ""

    @property
    def identity(self) -> tuple[str, str, str]:
        """Return the parts of a diagnostic that do not depend on its position."""
        return _PLACES.sub("", self.message), self.source, self.code


class Lines:
    """The lines of a text before and after a change. What is between the common ends has changed."""

    def __init__(self, before: str, after: str) -> None:
        self._before = before.splitlines()
        self._after = after.splitlines()
        shorter = min(len(self._before), len(self._after))
        self._head = _common(self._before, self._after, shorter)
        self._tail = _common(self._before[::-1], self._after[::-1], shorter - self._head)
        self._moved = len(self._after) - len(self._before)

    def moved(self, line: int) -> int | None:
        """Return where a line is after the change; ``None`` if it is among those that have changed."""
        if line < self._head:
            return line
        return line + self._moved if line >= len(self._before) - self._tail else None

    def has_changed(self, line: int) -> bool:
        """Return whether a line after the change is among those that have changed."""
        return self._head <= line < len(self._after) - self._tail

    def old_text(self, line: int) -> str:
        """Return a line before the change, without blanks around."""
        return self._before[line].strip() if 0 <= line < len(self._before) else ""

    def new_text(self, line: int) -> str:
        """Return a line after the change, without blanks around."""
        return self._after[line].strip() if 0 <= line < len(self._after) else ""


def _common(one: Sequence[str], other: Sequence[str], most: int) -> int:
    """Return the number of equal lines at the beginning of two texts."""
    return next((index for index in range(most) if one[index] != other[index]), most)


def brought(
    before: Sequence[Diagnostic],
    after: Iterable[Diagnostic],
    lines: Lines,
    names: Mapping[str, str] | None = None,
) -> list[Diagnostic]:
    """Return the diagnostics that were not there before, in their order.

    After a rename, ``names`` has the new names by the old ones: old diagnostics may mention them.
    """
    kept: set[tuple[int, tuple[str, str, str]]] = set()
    changed: list[Diagnostic] = []
    for old in before:
        line = lines.moved(old.line)
        if line is None:
            changed.append(old)
        else:
            kept.add((line, old.identity))
    if names:
        # No line has moved.
        kept.update((old.line, _with_names(old, names).identity) for old in before)
    left = [new for new in after if (new.line, new.identity) not in kept]
    # Those in changed lines: first those whose line was only moved, then the others.
    moved = Counter((old.identity, lines.old_text(old.line)) for old in changed)
    others = Counter(old.identity for old in changed)
    unmoved: list[Diagnostic] = []
    for new in left:
        if moved[key := (new.identity, lines.new_text(new.line))] > 0:
            moved[key] -= 1
            others[new.identity] -= 1
        else:
            unmoved.append(new)
    found: list[Diagnostic] = []
    for new in unmoved:
        if lines.has_changed(new.line) and others[new.identity] > 0:
            others[new.identity] -= 1
        else:
            found.append(new)
    return found


def most_important(found: Iterable[tuple[Path, Diagnostic]], most: int) -> list[tuple[Path, Diagnostic]]:
    """Return at most ``most`` diagnostics: errors first, and of those, one of each line first."""
    # A compiler and the server itself may report the same error, perhaps in other words.
    once: dict[tuple[Path, int, int, str], tuple[Path, Diagnostic]] = {}
    for path, one in found:
        once.setdefault((path, one.line, one.character, one.code or one.message), (path, one))
    lines = Counter[tuple[Path, int]]()
    ranks: dict[tuple[Path, Diagnostic], tuple[int, int]] = {}
    for path, one in once.values():
        lines[path, one.line] += 1
        ranks[path, one] = one.severity, lines[path, one.line]
    return sorted(ranks, key=lambda entry: ranks[entry])[:most]


def _with_names(found: Diagnostic, names: Mapping[str, str]) -> Diagnostic:
    return replace(found, message=_WORD.sub(lambda word: names.get(word[0], word[0]), found.message))
