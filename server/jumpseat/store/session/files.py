"""Text files, and the workspace files that clients store in a session's ``files`` folder.

Names of workspace files come from clients: they are resolved, links included, and must stay inside the folder.
"""

from __future__ import annotations

import errno
import os
import stat
import uuid
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from jumpseat.errors import InvalidRequestError, StoreError
from jumpseat.system.file_trees import delete_folder, walk
from jumpseat.system.private_files import create_private_folder, owner_only
from jumpseat.system.regular_files import read_whole
from jumpseat_protocol.limits import is_path

LARGEST_BYTES: Final = 16 * 1024 * 1024
"""Largest file that is read, because its text has to fit into one response."""


def read_text(path: Path) -> str | None:
    """Read a file as UTF-8, replacing invalid bytes; return ``None`` if there is no file.

    Raises:
        StoreError: the file cannot be read, is too large or is not a regular file.
    """
    try:
        if path.is_dir() or not path.exists():
            return None
        return read_whole(path, LARGEST_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise StoreError(f"cannot read {path.name!r}: {error.strerror or error}") from error
    except ValueError as error:
        raise StoreError(f"cannot read {path.name!r}: {error}") from None


def write_text(path: Path, content: str) -> None:
    """Write a file atomically, creating its parent folders: readers see the old text or the new one.

    The file has mode 0600, a new folder 0700.

    Raises:
        StoreError: the file cannot be written.
    """
    draft = path.parent / f".{uuid.uuid4().hex}.tmp"
    with _refused_text(path):
        create_private_folder(path.parent)
        try:
            with open(draft, "xb", opener=owner_only) as file:
                file.write(content.encode())
            draft.replace(path)
        except BaseException:
            with suppress(OSError):
                draft.unlink()
            raise


@contextmanager
def _refused_text(path: Path) -> Generator[None]:
    """Turn errors of the system about a text file into errors of the store."""
    try:
        yield
    except (FileExistsError, NotADirectoryError):
        raise StoreError(f"cannot write {path.name!r}: its parent is a file, expected a folder") from None
    except (OSError, UnicodeEncodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise StoreError(f"cannot write {path.name!r}: {reason or error}") from error


@contextmanager
def _refused(name: str, action: str) -> Generator[None]:
    """Turn errors of the system about a workspace file into errors of the request."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise InvalidRequestError(f"cannot {action} {name!r}: there is no such path in the workspace") from None
    except FileExistsError:
        raise InvalidRequestError(f"cannot {action} {name!r}: it exists") from None
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EISDIR, errno.EINVAL):
            raise InvalidRequestError(f"cannot {action} {name!r}: {error.strerror}") from None
        raise StoreError(f"cannot {action} {name!r}: {error.strerror or error}") from error


class FileState(Struct, frozen=True):
    """The state of a workspace file or folder. Times are in Unix time, in milliseconds."""

    is_file: bool
    is_directory: bool
    size: int
    mtime_ms: float
    birthtime_ms: float


class WorkspaceFiles:
    """The ``files`` folder of one session; it is created with the first file.

    The methods are asynchronous because those of other kinds of storage are; these do not wait.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, name: str) -> str:
        """Return the path of a file."""
        return str(self.root / name)

    async def names(self) -> list[str]:
        """Return the paths of all files, relative to the folder and sorted; links are left out."""
        found: list[str] = []
        for folder, _, files in walk(self.root):
            for name in files:
                path = Path(folder, name)
                if path.is_file() and not path.is_symlink():  # noqa: ASYNC240
                    # JSON cannot hold names that are not UTF-8.
                    with suppress(UnicodeEncodeError):
                        found.append(path.relative_to(self.root).as_posix().encode().decode())
        return sorted(found)

    async def read(self, name: str) -> str:
        """Read a file.

        Raises:
            InvalidRequestError: there is no such file, or the name leads out of the folder.
            StoreError: the file cannot be read.
        """
        content = read_text(self._locate(name))
        if content is None:
            raise InvalidRequestError(f"there is no file {name!r} in the workspace")
        return content

    async def write(self, name: str, content: str) -> bool:
        """Create or replace a file; return whether it is new.

        Raises:
            InvalidRequestError: the name leads out of the folder, or is that of a subfolder.
            StoreError: the file cannot be written.
        """
        path = self._locate(name)
        try:
            if path.is_dir():
                raise InvalidRequestError(f"{name!r} is a folder of the workspace, expected the path of a file")
            is_new = not path.exists()
        except OSError as error:
            raise StoreError(f"cannot write {path.name!r}: {error.strerror or error}") from error
        # Imported with the first write: most processes make none.
        from jumpseat.system.nofollow import replace_file

        with _refused_text(path):
            # A command of the session may exchange a folder for a link meanwhile.
            replace_file(path, content.encode(), 0o600, folder_mode=0o700)
        return is_new

    async def stat(self, name: str) -> FileState:
        """Return the state of a file or folder.

        Raises:
            InvalidRequestError: there is no such path, or the name leads out of the folder.
            StoreError: the path cannot be looked at.
        """
        with _refused(name, "look at"):
            state = os.stat(self._locate(name))
        return FileState(
            is_file=stat.S_ISREG(state.st_mode),
            is_directory=stat.S_ISDIR(state.st_mode),
            size=state.st_size,
            mtime_ms=state.st_mtime_ns / 1e6,
            # Not all systems know when a file was created.
            birthtime_ms=getattr(state, "st_birthtime", state.st_ctime) * 1000,
        )

    async def create_folder(self, name: str, *, recursive: bool) -> None:
        """Create a folder; ``recursive`` creates its parents, too, and allows it to exist.

        Raises:
            InvalidRequestError: the path exists or its parent does not, or the name leads out of the folder.
            StoreError: the folder cannot be created.
        """
        path = self._locate(name)
        with _refused(name, "create"):
            create_private_folder(self.root)
            if recursive:
                create_private_folder(path)
            else:
                path.mkdir(mode=0o700)

    async def remove(self, name: str, *, recursive: bool, force: bool) -> None:
        """Remove a file or an empty folder, with ``recursive`` any folder; with ``force``, it may be missing.

        Links are removed, not followed.

        Raises:
            InvalidRequestError: there is no such path, the folder is not empty, or the name leads out of it.
            StoreError: the path cannot be removed.
        """
        path = self._locate(name, follow=False)
        if force and not os.path.lexists(path):  # noqa: ASYNC240
            return
        with _refused(name, "remove"):
            if not path.is_dir() or path.is_symlink():
                path.unlink()
            elif recursive:
                delete_folder(path)
            else:
                path.rmdir()

    async def rename(self, source: str, destination: str) -> bool:
        """Rename a file or folder; return whether an existing file was replaced.

        Raises:
            InvalidRequestError: there is no such path, the destination is in the way or has no parent, or a name
                leads out of the folder.
            StoreError: the path cannot be renamed.
        """
        before, after = self._locate(source, follow=False), self._locate(destination, follow=False)
        with _refused(source, "rename"):
            replaced = os.path.lexists(after)  # noqa: ASYNC240
            before.replace(after)
            return replaced

    def _locate(self, name: str, *, follow: bool = True) -> Path:
        """Return the path of a file; unless ``follow``, a link at its end is not resolved."""
        try:
            if not is_path(name):
                raise ValueError
            root = self.root.resolve()
            path = (root / name).resolve()
            if not follow and path != root and Path(name).name not in ("", ".."):
                path = (root / name).parent.resolve() / Path(name).name
        except (OSError, RuntimeError, ValueError):
            # A loop of links, or what no path is: its links would take long to resolve.
            raise InvalidRequestError(f"{name!r} is not a path in the workspace files directory") from None
        if path == root or not path.is_relative_to(root):
            raise InvalidRequestError(f"{name!r} is not a path in the workspace files directory")
        return path
