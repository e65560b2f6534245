"""Mentions of files in prompts: ``@src/main.py``, ``@"a name with spaces.txt"``, ``@docs/``."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Final

_MENTION: Final = re.compile(r'(?<!\S)@(?:"([^"\n]+)(?:"|$)|([^\s"]+))', re.MULTILINE)
_UNFINISHED: Final = re.compile(r'(?<!\S)@("?)([^"\n]*)$')
_MAX_COMPLETIONS: Final = 50
_CLOSING_PUNCTUATION: Final = ".,;:!?)]}'"
"""Trailing punctuation that is not part of a name, unless a file of the whole name exists."""


def find_attachments(text: str, folder: Path) -> list[dict[str, Any]]:
    """Return existing files and folders that ``text`` mentions, each once, as attachments of ``session.send``."""
    found: dict[str, dict[str, Any]] = {}
    for quoted, bare in _MENTION.findall(text):
        for name in (quoted,) if quoted else (bare, bare.rstrip(_CLOSING_PUNCTUATION)):
            attached = find_attachment(name, folder)
            if attached is not None:
                found.setdefault(attached["path"], attached)
                break
    return list(found.values())


def find_attachment(name: str, folder: Path) -> dict[str, Any] | None:
    """Return a file or folder as an attachment of ``session.send``, or ``None`` if it does not exist."""
    if not name:
        return None
    path = os.path.normpath(folder / os.path.expanduser(name))
    if os.path.isdir(path):
        return {"type": "directory", "path": path, "displayName": name}
    return {"type": "file", "path": path, "displayName": name} if os.path.isfile(path) else None


def completions(text: str, folder: Path) -> tuple[int, list[str]]:
    """Return the start of the unfinished mention at the end of ``text``, and its completions (none without one)."""
    found = _UNFINISHED.search(text)
    if found is None or (not found[1] and " " in found[2]):
        return len(text), []
    head, tail = os.path.split(found[2])
    try:
        with os.scandir(folder / os.path.expanduser(head)) as entries:
            names = sorted(
                entry.name + ("/" if entry.is_dir() else "")
                for entry in entries
                if entry.name.startswith(tail) and (tail.startswith(".") or not entry.name.startswith("."))
            )
    except OSError:
        return len(text), []
    return found.start(), [
        _as_mention(os.path.join(head, name)) for name in names[:_MAX_COMPLETIONS] if name.isprintable()
    ]


def _as_mention(path: str) -> str:
    # Leave the quotes of a folder open, so that the user can continue with its content.
    spaced = f'@"{path}' if path.endswith("/") else f'@"{path}"'
    return spaced if re.search(r"\s", path) else f"@{path}"
