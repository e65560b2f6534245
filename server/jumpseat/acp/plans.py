"""The plan of a session, a page of Markdown, as the list of entries that editors show. Pure."""

from __future__ import annotations

import re
from typing import Any, Final

_ENTRY: Final = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+(?:\[([ xX~/-])\]\s+)?(\S.*)$")
_STATUS: Final = {"x": "completed", "X": "completed", "~": "in_progress", "/": "in_progress", "-": "in_progress"}


def entries_of(markdown: str) -> list[dict[str, Any]]:
    """An entry for each item of a list; ``[x]`` is done, ``[~]`` is being done, and all others are to be."""
    found = (_ENTRY.match(line) for line in markdown.splitlines())
    return [
        {"content": one[2].strip(), "priority": "medium", "status": _STATUS.get(one[1] or "", "pending")}
        for one in found
        if one is not None
    ]
