"""Unified diffs, as our tools make them, into the pairs of texts that editors show side by side. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

_HUNK: Final = re.compile(r"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass(slots=True)
class _Hunk:
    """One hunk: the lines that are still to come on both sides, and those that have."""

    name: str
    created: bool
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
        texts = {"newText": "".join(self.new)}
        if not self.created:
            texts["oldText"] = "".join(self.old)
        return {"type": "diff", "path": self.name, **texts}


def contents_of(unified: str, path: str | None = None) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """For each hunk the content that shows it, and its location; nothing where the text is no diff.

    ``path`` is the file's where the caller knows it, for a diff of one file.
    """
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
            olds, line, news = found.groups(default="1")
            current = _Hunk(name, created, max(1, int(line)), int(olds), int(news))
            hunks.append(current)
    return [(one.content(), {"path": one.name, "line": one.line}) for one in hunks]
