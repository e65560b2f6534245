"""The small files of one session, by name: ``workspace.yaml``, ``checkpoints/001-title.md``.

They lie in a folder of the disk, or in the virtual file system of a client (``session_fs``).
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final, Protocol

from jumpseat.errors import StoreError
from jumpseat.system.private_files import create_private_folder, owner_only

LARGEST_BYTES: Final = 64 * 1024 * 1024
"""Largest file that is read."""
_REPLACING: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)
_FLAGS: Final = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class StateFiles(Protocol):
    """The files of one session. Names come from the server alone, with slashes between folders.

    What ``write``, ``append`` and ``remove`` change is visible to ``read`` and ``names`` at once; ``flush`` waits
    until it is stored. All methods but the asynchronous ones may be called from threads.
    """

    def path(self, name: str) -> str:
        """Return the path of a file, for clients and models."""
        ...

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; ``None`` if there is none.

        Raises:
            OSError: the file cannot be read.
        """
        ...

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder, sorted; none if it cannot be read."""
        ...

    def write(self, name: str, data: bytes) -> None:
        """Replace a file atomically, creating its folder.

        Raises:
            OSError: the file cannot be written.
        """
        ...

    def append(self, name: str, data: bytes) -> int:
        """Add to the end of a file; returns its size then.

        Raises:
            OSError: the file cannot be written.
        """
        ...

    def remove(self, name: str) -> bool:
        """Remove a file; returns whether there was one.

        Raises:
            OSError: the file cannot be removed.
        """
        ...

    async def refresh(self, name: str) -> None:
        """Let ``read`` return what others may have written to a file meanwhile.

        Raises:
            StoreError: the file cannot be read.
        """
        ...

    async def flush(self) -> None:
        """Wait until all changes are stored.

        Raises:
            StoreError: a change could not be stored.
        """
        ...


class DiskFiles:
    """The files in the folder ``root``, which need not exist."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, name: str) -> str:
        return str(self.root / name)

    def read(self, name: str) -> bytes | None:
        try:
            # Does not wait for a pipe that somebody has put there.
            fd = os.open(f"{self.root}/{name}", os.O_RDONLY | _FLAGS)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            state = os.fstat(fd)
            if not stat.S_ISREG(state.st_mode):
                raise OSError(errno.EINVAL, "not a regular file")
            if state.st_size > LARGEST_BYTES:
                raise OSError(errno.EFBIG, f"more than {LARGEST_BYTES} bytes")
            data = os.read(fd, state.st_size)
            while rest := os.read(fd, 1 << 16):
                data += rest
            return data
        finally:
            os.close(fd)

    def names(self, folder: str) -> list[str]:
        try:
            return sorted(os.listdir(self.root / folder))
        except OSError:
            return []

    def write(self, name: str, data: bytes) -> None:
        path = f"{self.root}/{name}"
        draft = f"{path}.{os.getpid()}.tmp"
        try:
            fd = owner_only(draft, _REPLACING)
        except FileNotFoundError:
            create_private_folder(Path(path).parent)
            fd = owner_only(draft, _REPLACING)
        try:
            # Not with a file object, which needs four more calls of the system.
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(fd, rest) :]
        finally:
            os.close(fd)
        os.replace(draft, path)

    def append(self, name: str, data: bytes) -> int:
        with open(self.root / name, "ab", opener=owner_only) as file:
            file.write(data)
            return file.tell()

    def remove(self, name: str) -> bool:
        try:
            os.unlink(self.root / name)
        except FileNotFoundError:
            return False
        return True

    async def refresh(self, name: str) -> None:
        """Do nothing: every ``read`` looks at the disk."""

    async def flush(self) -> None:
        """Do nothing: changes are written at once."""


def store_error(action: str, name: str, error: Exception) -> StoreError:
    """Return the error of an action on a file, which has failed with ``error``."""
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return StoreError(f"cannot {action} {name!r}: {reason}")
