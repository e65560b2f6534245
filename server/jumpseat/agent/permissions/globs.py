"""Expand the patterns of a command line against the disk, in bounded time.

The result may hold more names than the shell would find, hidden files above all, but never fewer: a budget that is
exceeded says so.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from msgspec import Struct

from jumpseat.system.regular_files import exists, scan_folder

MAX_NAMES: Final = 256
"""Limit of the names that the patterns of one command line stand for."""

MAX_ENTRIES: Final = 10_000
"""Limit of the entries of folders that are compared with the patterns of one command line."""

_MAGIC: Final = "*?["
_ANY_DEPTH: Final = "**"


class GlobBudget(Struct):
    """The names and entries left for one command line; ``exceeded`` means that names are missing."""

    names: int = MAX_NAMES
    entries: int = MAX_ENTRIES
    exceeded: bool = False

    def spend_name(self) -> bool:
        """Count a name; return whether it may be used."""
        self.names -= 1
        self.exceeded = self.exceeded or self.names < 0
        return not self.exceeded

    def spend_entry(self) -> bool:
        """Count an entry of a folder; return whether it may be looked at."""
        self.entries -= 1
        self.exceeded = self.exceeded or self.entries < 0
        return not self.exceeded


def expand_globs(globs: Iterable[str], base: Path, budget: GlobBudget) -> list[str]:
    """Expand patterns, relative to ``base``, as the shell does: a pattern without a match stands for itself.

    ``**`` stands for folders at any depth, as it does if the shell's option ``globstar`` is set.
    """
    expanded: list[str] = []
    for glob in globs:
        names = [name for name in _matches(glob, base, budget) if budget.spend_name()]
        expanded += names or [glob]
    return expanded


def _matches(glob: str, base: Path, budget: GlobBudget) -> Iterator[str]:
    parts = [part for part in glob.split("/") if part]
    pending = [("/" if glob.startswith("/") else "", 0)]
    while pending and not budget.exceeded:
        prefix, index = pending.pop()
        while index < len(parts) and not any(mark in parts[index] for mark in _MAGIC):
            prefix, index = posixpath.join(prefix, parts[index]), index + 1
        if index == len(parts):
            if exists(base / prefix):
                yield prefix
            continue
        part, is_last = parts[index], index == len(parts) - 1
        if part == _ANY_DEPTH and not is_last:
            pending.append((prefix, index + 1))
        for entry in scan_folder(base / prefix):
            if not budget.spend_entry():
                break
            path = posixpath.join(prefix, entry.name)
            if part == _ANY_DEPTH and entry.is_folder:
                # With `globstar` links are not followed, without it `**` is `*`.
                pending.append((path, index + 1 if entry.is_link else index))
            if is_last and fnmatchcase(entry.name, part):
                yield path
            elif entry.is_folder and part != _ANY_DEPTH and fnmatchcase(entry.name, part):
                pending.append((path, index + 1))
