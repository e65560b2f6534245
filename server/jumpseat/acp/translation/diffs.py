"""Convert unified diffs of the tools into the pairs of texts that editors show side by side. Pure.

A pair holds a whole file before and after the change: some editors show only the first pair, and users must see all
that they approve. A diff contains only its hunks; the rest comes from the file, if its content matches the diff.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import groupby
from typing import Any, Final, Protocol, TypeAlias

from msgspec import Struct, field

Reader: TypeAlias = Callable[[str], str | None]
"""Returns the current text of a file by its path, or ``None`` where it is unknown."""


class Renderer(Protocol):
    """Converts a unified diff for editors: :func:`diffs_of`, or its counterpart for version 2."""

    def __call__(
        self, unified: str, path: str | None = None, *, read: Reader | None = None, applied: bool = False
    ) -> Diffs: ...


_HUNK: Final = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


class Hunk(Struct):
    """A hunk: its first line on both sides, the numbers of lines still to read, and the lines read.

    ``text`` are its lines as they are in the diff, the first one included.
    """

    name: str
    created: bool
    deleted: bool
    old_name: str
    old_line: int
    line: int
    old_left: int
    new_left: int
    old: list[str] = field(default_factory=list[str])
    new: list[str] = field(default_factory=list[str])
    text: list[str] = field(default_factory=list[str])
    _last: tuple[list[str], ...] = ()

    def take(self, text: str) -> bool:
        """Add a line to the hunk, or return ``False`` if the line does not belong to it."""
        mark, line = text[:1], text[1:] + "\n"
        if mark == "\\":
            # "No newline at end of file" is about the line before, on each of its sides.
            for side in self._last:
                side[-1] = side[-1].removesuffix("\n")
            if self._last:
                self.text.append(text)
            return bool(self._last)
        if (self.old_left, self.new_left) == (0, 0):
            return False
        self._last = {"-": (self.old,), "+": (self.new,)}.get(mark, (self.old, self.new))
        for side in self._last:
            side.append(line)
        self.text.append(text)
        self.old_left -= mark != "+"
        self.new_left -= mark != "-"
        return True

    def content(self) -> dict[str, Any]:
        """Return the hunk as a content block."""
        return _content(self.name, None if self.created else "".join(self.old), "".join(self.new))


class Diffs(Struct, frozen=True):
    """A change for editors: the pairs of texts, and the location of each hunk."""

    contents: list[dict[str, Any]]
    locations: list[dict[str, Any]]


def diffs_of(unified: str, path: str | None = None, *, read: Reader | None = None, applied: bool = False) -> Diffs:
    """Return one pair per file whose content matches the diff, and else one pair per hunk.

    ``applied`` means that the files already contain the change. ``path`` overrides the file name of a diff of one
    file. The result is empty if ``unified`` is not a diff.
    """
    hunks = hunks_of(unified, path)
    contents: list[dict[str, Any]] = []
    for name, group in groupby(hunks, key=lambda hunk: hunk.name):
        found = list(group)
        text = read(name) if read is not None and not found[0].created else None
        other = _other_side(text, found, applied=applied) if text is not None else None
        if text is None or other is None:
            contents += [hunk.content() for hunk in found]
        else:
            contents.append(_content(name, *((other, text) if applied else (text, other))))
    return Diffs(contents, [{"path": hunk.name, "line": max(1, hunk.line)} for hunk in hunks])


def hunks_of(unified: str, path: str | None = None) -> list[Hunk]:
    """Return the hunks of a unified diff; ``path`` overrides the file name of a diff of one file."""
    hunks: list[Hunk] = []
    name, created, deleted, old = path or "", False, False, ""
    current: Hunk | None = None
    for text in unified.split("\n"):
        if current is not None and current.take(text):
            continue
        current = None
        if text.startswith("--- "):
            created, old = text == "--- /dev/null", text[4:].removeprefix("a/")
        elif text.startswith("+++ "):
            deleted = text == "+++ /dev/null"
            new = old if deleted else text[4:].removeprefix("b/")
            name = path or f"/{new.lstrip('/')}"
        elif name and (found := _HUNK.match(text)) is not None:
            old_line, olds, line, news = found.groups(default="1")
            before = name if path or created else f"/{old.lstrip('/')}"
            current = Hunk(name, created, deleted, before, int(old_line), int(line), int(olds), int(news))
            current.text.append(text)
            hunks.append(current)
    return hunks


def _other_side(text: str, hunks: list[Hunk], *, applied: bool) -> str | None:
    """Apply or revert ``hunks`` and return the result, or ``None`` if they do not match ``text``."""
    # splitlines would also split at line ends that diffs do not know.
    lines = [line for line in re.split(r"(?<=\n)", text) if line]
    result: list[str] = []
    position = 0
    for hunk in hunks:
        here, there = (hunk.new, hunk.old) if applied else (hunk.old, hunk.new)
        # A hunk without lines on this side has the number of the line before it.
        start = (hunk.line if applied else hunk.old_line) - bool(here)
        if start < position or lines[start : start + len(here)] != here:
            return None
        result += [*lines[position:start], *there]
        position = start + len(here)
    return "".join([*result, *lines[position:]])


def _content(path: str, old: str | None, new: str) -> dict[str, Any]:
    content = {"type": "diff", "path": path, "newText": new}
    return content if old is None else {**content, "oldText": old}
