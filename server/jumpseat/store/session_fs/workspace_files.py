"""The files that clients keep in a session, in a virtual file system: each operation is one of the client's."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from jumpseat.errors import InvalidRequestError
from jumpseat.store.session.files import FileState
from jumpseat.store.session_fs.file_system import FileSystem

FOLDER: Final = "files"
MOST_FOLDERS: Final = 10_000
"""Limit on the folders that a list looks into, because a file system may be endless."""


class ClientWorkspaceFiles:
    """Implements :class:`jumpseat.store.session.storage.StoredFiles`."""

    def __init__(self, file_system: FileSystem) -> None:
        self._fs = file_system

    def path(self, name: str) -> str:
        return self._fs.provider.path(FOLDER, self._relative(name))

    async def names(self) -> list[str]:
        found: list[str] = []
        folders = [""]
        looked = 0
        while folders and looked < MOST_FOLDERS:
            folder = folders.pop()
            looked += 1
            for entry in await self._fs.entries(self._fs.provider.path(FOLDER, folder) if folder else self._root):
                name = f"{folder}/{entry.name}" if folder else entry.name
                (folders if entry.type == "directory" else found).append(name)
        return sorted(found)

    async def read(self, name: str) -> str:
        content = await self._fs.read(self.path(name))
        if content is None:
            raise InvalidRequestError(f"there is no file {name!r} in the workspace")
        return content

    async def write(self, name: str, content: str) -> bool:
        path = self.path(name)
        state = await self._fs.stat(path)
        if state is not None and state.is_directory:
            raise InvalidRequestError(f"{name!r} is a folder of the workspace, expected the path of a file")
        await self._fs.create_folder(self._parent(name))
        await self._fs.write(path, content.encode("utf-8", "replace").decode())
        return state is None

    async def stat(self, name: str) -> FileState:
        state = await self._fs.stat(self.path(name))
        if state is None:
            raise _missing("look at", name)
        return FileState(
            is_file=state.is_file,
            is_directory=state.is_directory,
            size=state.size,
            mtime_ms=_unix_ms(state.mtime),
            birthtime_ms=_unix_ms(state.birthtime),
        )

    async def create_folder(self, name: str, *, recursive: bool) -> None:
        if not recursive:
            if await self._fs.stat(self.path(name)) is not None:
                raise InvalidRequestError(f"cannot create {name!r}: it exists")
            if self._parent(name) != self._root and await self._fs.stat(self._parent(name)) is None:
                raise _missing("create", name)
        await self._fs.create_folder(self.path(name), recursive=True)

    async def remove(self, name: str, *, recursive: bool, force: bool) -> None:
        path = self.path(name)
        state = await self._fs.stat(path)
        if state is None:
            if force:
                return
            raise _missing("remove", name)
        if state.is_directory and not recursive and await self._fs.entries(path):
            raise InvalidRequestError(f"cannot remove {name!r}: the folder is not empty")
        await self._fs.remove(path, recursive=recursive, force=force)

    async def rename(self, source: str, destination: str) -> bool:
        before, after = self.path(source), self.path(destination)
        if await self._fs.stat(before) is None:
            raise _missing("rename", source)
        if self._parent(destination) != self._root and await self._fs.stat(self._parent(destination)) is None:
            raise _missing("rename", destination)
        replaced = await self._fs.exists(after)
        await self._fs.rename(before, after)
        return replaced

    @property
    def _root(self) -> str:
        return self._fs.provider.path(FOLDER)

    def _parent(self, name: str) -> str:
        folder = self._relative(name).rpartition("/")[0]
        return self._fs.provider.path(FOLDER, folder) if folder else self._root

    def _relative(self, name: str) -> str:
        """Return the normalized path of a file relative to the folder."""
        provider = self._fs.provider
        whole = None if provider.is_absolute(name) else provider.relative(provider.path(FOLDER, name))
        if whole is None or not whole.startswith(f"{FOLDER}/") or "\0" in whole:
            raise InvalidRequestError(f"{name!r} is not a path in the workspace files directory")
        return whole.removeprefix(f"{FOLDER}/")


def _unix_ms(time: str) -> float:
    """Return a time of a client as Unix time; 0 for one that is not ISO 8601."""
    try:
        return datetime.fromisoformat(time).timestamp() * 1000
    except (ValueError, OverflowError):
        return 0


def _missing(action: str, name: str) -> InvalidRequestError:
    return InvalidRequestError(f"cannot {action} {name!r}: there is no such path in the workspace")
