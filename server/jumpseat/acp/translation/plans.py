"""The plan of a session, its todos or a page of Markdown, as the list of entries that editors show. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

_ENTRY: Final = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+(?:\[([ xX~/-])\]\s+)?(\S.*)$")
_STATUS: Final = {"x": "completed", "X": "completed", "~": "in_progress", "/": "in_progress", "-": "in_progress"}
_TODO_STATUS: Final = {"in_progress": "in_progress", "done": "completed", "completed": "completed"}


def entries_of(markdown: str) -> list[dict[str, Any]]:
    """An entry for each item of a list; ``[x]`` is done, ``[~]`` is being done, and all others are to be."""
    found = (_ENTRY.match(line) for line in markdown.splitlines())
    return [
        {"content": one[2].strip(), "priority": "medium", "status": _STATUS.get(one[1] or "", "pending")}
        for one in found
        if one is not None
    ]


def entries_of_todos(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """An entry for each todo, by its title; what is not being done and not done is to be, blocked or not."""
    found = ((row.get("title") or row.get("id"), row.get("status")) for row in rows)
    return [
        {"content": str(title), "priority": "medium", "status": _TODO_STATUS.get(str(status), "pending")}
        for title, status in found
        # A column holds whatever the model has put there.
        if title is not None
    ]
