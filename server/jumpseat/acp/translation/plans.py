"""A session's plan as the entries that editors show, from its todos or its Markdown page. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

PLAN_ID: Final = "plan"
"""The id of a session's only plan."""

_ENTRY: Final = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+(?:\[([ xX~/-])\]\s+)?(\S.*)$")
_STATUS: Final = {"x": "completed", "X": "completed", "~": "in_progress", "/": "in_progress", "-": "in_progress"}
_TODO_STATUS: Final = {"in_progress": "in_progress", "done": "completed", "completed": "completed"}


def entries_of(markdown: str) -> list[dict[str, Any]]:
    """Return an entry per list item: ``[x]`` is completed, ``[~]`` in progress, all others are pending."""
    found = (_ENTRY.match(line) for line in markdown.splitlines())
    return [
        {"content": entry[2].strip(), "priority": "medium", "status": _STATUS.get(entry[1] or "", "pending")}
        for entry in found
        if entry is not None
    ]


def entries_of_todos(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return an entry per todo. Other states than in progress and done, such as blocked, are pending."""
    found = ((row.get("title") or row.get("id"), row.get("status")) for row in rows)
    return [
        {"content": str(title), "priority": "medium", "status": _TODO_STATUS.get(str(status), "pending")}
        for title, status in found
        # Models write the rows, so that columns may be null.
        if title is not None
    ]
