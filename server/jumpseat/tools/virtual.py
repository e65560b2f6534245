"""The files of a session that its client keeps: list and read them for the searching tools, report changes."""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import Final

from jumpseat.agent.interfaces import VirtualFiles
from jumpseat.tools.workspace_files import Changed, FileEdit

MOST_FOLDERS: Final = 1000
MOST_FILES: Final = 1000
MOST_BYTES: Final = 64 * 1024 * 1024
"""Limits of one search, because a file system of a client may be endless, and each file is a request."""


async def names_below(files: VirtualFiles, folder: str) -> list[str] | None:
    """Return the paths of the files below a folder, relative to the folder and sorted; ``None`` if it is none.

    Raises:
        StoreError: the client fails.
    """
    found: list[str] = []
    folders, looked = [""], 0
    while folders and looked < MOST_FOLDERS and len(found) < MOST_FILES:
        relative = folders.pop()
        looked += 1
        entries = await files.load(f"{folder.rstrip('/')}/{relative}".rstrip("/"))
        if isinstance(entries, list):
            for entry in entries:
                (folders if entry.endswith("/") else found).append(relative + entry)
        elif not relative:
            return None
    return sorted(found)[:MOST_FILES]


async def texts_below(files: VirtualFiles, path: str) -> dict[str, str] | None:
    """Return the texts of the files below a folder by their relative paths, or of one file by its name.

    Returns:
        ``None`` if there is nothing at the path.

    Raises:
        StoreError: the client fails.
    """
    content = await files.load(path)
    if content is None:
        return None
    if isinstance(content, bytes):
        return {posixpath.basename(path): content.decode("utf-8", "replace")}
    texts: dict[str, str] = {}
    left = MOST_BYTES
    for name in await names_below(files, path) or ():
        content = await files.load(f"{path.rstrip('/')}/{name}")
        if isinstance(content, bytes) and (left := left - len(content)) >= 0:
            texts[name] = content.decode("utf-8", "replace")
    return texts


class WatchedVirtualFiles:
    """The virtual files of a session, during one call: reports changes as :class:`Files` does."""

    def __init__(self, files: VirtualFiles, changed: Changed) -> None:
        self._files = files
        self._changed = changed
        self._loaded: dict[str, bytes] = {}

    def covers(self, path: str) -> bool:
        return self._files.covers(path)

    async def load(self, path: str) -> bytes | list[str] | None:
        content = await self._files.load(path)
        if isinstance(content, bytes):
            self._loaded[path] = content
        return content

    async def save(self, path: str, content: bytes) -> None:
        await self._files.save(path, content)
        before = self._loaded.get(path)
        self._changed(FileEdit(Path(path), Path(path), before, content, existed=before is not None, exists=True))
        self._loaded[path] = content

    async def remove(self, path: str) -> None:
        await self._files.remove(path)
        before = self._loaded.pop(path, None)
        self._changed(FileEdit(Path(path), Path(path), before, None, existed=True, exists=False))
