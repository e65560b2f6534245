"""Files that a prompt names: ``@src/main.py``, ``@"a name with spaces.txt"``, ``@docs/``."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Final

_MENTION: Final = re.compile(r'(?<!\S)@(?:"([^"\n]+)(?:"|$)|([^\s"]+))', re.MULTILINE)
_UNFINISHED: Final = re.compile(r'(?<!\S)@("?)([^"\n]*)$')
_SHOWN: Final = 50
_ENDS: Final = ".,;:!?)]}'"
"""What ends a sentence is no part of a name, unless there is a file that is called so."""


def mentioned(text: str, folder: Path) -> list[dict[str, Any]]:
    """What the text names of what is there, as attachments of ``session.send``, each once."""
    found: dict[str, dict[str, Any]] = {}
    for quoted, bare in _MENTION.findall(text):
        for name in (quoted,) if quoted else (bare, bare.rstrip(_ENDS)):
            attached = attachment(name, folder)
            if attached is not None:
                found.setdefault(attached["path"], attached)
                break
    return list(found.values())


def attachment(name: str, folder: Path) -> dict[str, Any] | None:
    """A file or folder as an attachment; ``None`` where there is none of this name."""
    if not name:
        return None
    path = os.path.normpath(folder / os.path.expanduser(name))
    if os.path.isdir(path):
        return {"type": "directory", "path": path, "displayName": name}
    return {"type": "file", "path": path, "displayName": name} if os.path.isfile(path) else None


def completions(text: str, folder: Path) -> tuple[int, list[str]]:
    """Where the mention at the end of ``text`` begins, and what can stand there; nothing without one."""
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
    return found.start(), [_written(os.path.join(head, name)) for name in names[:_SHOWN] if name.isprintable()]


def _written(path: str) -> str:
    # A folder is gone on with: its quotes stay open.
    spaced = f'@"{path}' if path.endswith("/") else f'@"{path}"'
    return spaced if re.search(r"\s", path) else f"@{path}"
