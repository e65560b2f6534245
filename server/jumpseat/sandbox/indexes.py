"""Tell whether a git index may name a repository: git then runs in that one, too, wherever it is."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

MAX_INDEX_BYTES: Final = 16 * 2**20
MAX_INDEXES: Final = 1000

_REPOSITORY: Final = b"\x00\x00\xe0\x00"
"""The mode of an entry that is a repository, as each version of the format has it (``man gitformat-index``)."""
_FOLDERS: Final = b"sdir\x00\x00\x00\x00"
"""The extension of a sparse index: some entries are folders, which may have any entries."""
_SHARED: Final = "sharedindex."
"""The beginning of the name of a file with further entries."""

_State: TypeAlias = tuple[int, int, int, int]


class Indexes:
    """The indexes of git folders. Remembers those that have not changed. No index is parsed."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[_State, bool]] = {}

    def may_name_repositories(self, folders: Iterable[str]) -> bool:
        """Return whether an index of these git folders, their submodules and work trees may name a repository.

        Answers ``True`` if there are too many, or one is too large. Blocks on the file system.
        """
        known, self._known = self._known, {}
        waiting, count = list(folders), 0
        found = False
        while waiting:
            folder = waiting.pop()
            waiting += _inner_folders(folder)
            count += 1
            if count > MAX_INDEXES:
                return True
            found = self._may_name(f"{folder}/index", known) or found
        return found

    def _may_name(self, index: str, known: dict[str, tuple[_State, bool]]) -> bool:
        try:
            status = os.stat(index)
        except OSError:
            return False
        state = status.st_dev, status.st_ino, status.st_ctime_ns, status.st_size
        before = known.get(index)
        self._known[index] = before if before is not None and before[0] == state else (state, _reads(index))
        return self._known[index][1]


def _reads(index: str) -> bool:
    """Read an index, and return whether it may name a repository."""
    try:
        beside = os.listdir(os.path.dirname(index))
        # A pipe would block.
        if not os.path.isfile(index) or any(name.startswith(_SHARED) for name in beside):
            return True
        with open(index, "rb") as file:
            data = file.read(MAX_INDEX_BYTES + 1)
    except OSError:
        return True
    return len(data) > MAX_INDEX_BYTES or _REPOSITORY in data or _FOLDERS in data


def _inner_folders(folder: str) -> Iterator[str]:
    """Yield the git folders of the work trees and submodules of a git folder."""
    for name in ("worktrees", "modules"):
        yield from _folders_in(f"{folder}/{name}")
    if not os.path.lexists(f"{folder}/HEAD"):
        # The first part of the name of a submodule.
        yield from _folders_in(folder)


def _folders_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries if entry.is_dir()]
    except OSError:
        return []
