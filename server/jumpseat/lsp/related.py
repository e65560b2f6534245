"""Find the files that a change may break: those that mention what the changed lines define.

Many servers check only files that are open. The search is bounded, and reads no folder of dependencies.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

MOST_FILES: Final = 3000
MOST_BYTES: Final = 16 * 1024 * 1024
LARGEST_FILE: Final = 256 * 1024
LIMIT_S: Final = 0.5
"""Bounds of one search: the files and bytes that are read, and its time."""

MOST_WORDS: Final = 200

SKIPPED: Final = frozenset(
    {"node_modules", "target", "vendor", "venv", "env", "dist", "build", "out", "bin", "obj", "__pycache__"}
)
"""Folders of dependencies and of what is generated; names that begin with a dot are skipped, too."""

INDEX_NAMES: Final = frozenset({"index", "__init__", "mod", "lib", "main"})
"""Names of files that others import by the name of the folder."""

_WORD: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]{2,80}")


def words_of(path: Path, before: str, after: str) -> set[str]:
    """Return the words by which other files refer to what a change touches."""
    stem = path.stem.split(".")[0]
    kept = {*after.splitlines()}
    changed = (line for line in before.splitlines() if line not in kept)
    found = {path.parent.name if stem in INDEX_NAMES else stem}
    for line in changed:
        found.update(_WORD.findall(line[:1000]))
        if len(found) > MOST_WORDS:
            break
    return found


def related_files(root: Path, path: Path, extensions: Collection[str], words: set[str], most: int) -> list[Path]:
    """Return at most ``most`` files below ``root`` that contain one of ``words``, near ones first. Blocks."""
    wanted = [word for word in words if word]
    if not wanted:
        return []
    pattern = re.compile(
        rb"(?<![\w$])(?:" + b"|".join(re.escape(word.encode()) for word in wanted) + rb")(?![\w$])"
    )
    end, files, size = time.monotonic() + LIMIT_S, 0, 0
    found: list[Path] = []
    for other in _files(root, path.parent, extensions):
        if len(found) == most or files == MOST_FILES or size > MOST_BYTES or time.monotonic() > end:
            break
        files += 1
        if other == path:
            continue
        try:
            text = _read(other)
        except OSError:
            continue
        size += len(text)
        if pattern.search(text):
            found.append(other)
    return found


def _read(path: Path) -> bytes:
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))
    with open(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_FILE:
            raise OSError("not a file of code")
        return file.read(LARGEST_FILE)


def _files(root: Path, first: Path, extensions: Collection[str]) -> Iterator[Path]:
    """Yield the files with one of ``extensions``: those below ``first``, then those of the rest of ``root``."""
    seen: set[str] = set()
    waiting = [str(root), str(first)]
    while waiting:
        folder = waiting.pop()
        if folder in seen:
            continue
        seen.add(folder)
        try:
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            name = entry.name
            if entry.is_dir(follow_symlinks=False):
                if name[0] != "." and name not in SKIPPED:
                    waiting.append(entry.path)
            elif os.path.splitext(name)[1].lower() in extensions and not entry.is_symlink():
                yield Path(entry.path)
