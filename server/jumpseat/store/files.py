"""Text files, and the workspace files that clients store in a session's ``files`` folder.

Names of workspace files come from clients: they are resolved, links included, and must stay inside the folder.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from pathlib import Path
from typing import Final

from jumpseat.deep_folders import walk
from jumpseat.errors import InvalidRequestError, StoreError
from jumpseat.owner_only import create_private_folder, owner_only
from jumpseat.regular_files import read_whole

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
    try:
        create_private_folder(path.parent)
        try:
            with open(draft, "xb", opener=owner_only) as file:
                file.write(content.encode())
            draft.replace(path)
        except BaseException:
            with suppress(OSError):
                draft.unlink()
            raise
    except (FileExistsError, NotADirectoryError):
        raise StoreError(f"cannot write {path.name!r}: its parent is a file, expected a folder") from None
    except (OSError, UnicodeEncodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise StoreError(f"cannot write {path.name!r}: {reason or error}") from error


def remove_file(path: Path) -> bool:
    """Remove a file; return whether there was one.

    Raises:
        StoreError: the file cannot be removed.
    """
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StoreError(f"cannot remove {path.name!r}: {error.strerror or error}") from error
    return True


class WorkspaceFiles:
    """The ``files`` folder of one session; it is created with the first file."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def names(self) -> list[str]:
        """Return the paths of all files, relative to the folder and sorted; links are left out."""
        found: list[str] = []
        for folder, _, files in walk(self.root):
            for name in files:
                path = Path(folder, name)
                if path.is_file() and not path.is_symlink():
                    # JSON cannot hold names that are not UTF-8.
                    with suppress(UnicodeEncodeError):
                        found.append(path.relative_to(self.root).as_posix().encode().decode())
        return sorted(found)

    def read(self, name: str) -> str:
        """Read a file.

        Raises:
            InvalidRequestError: there is no such file, or the name leads out of the folder.
            StoreError: the file cannot be read.
        """
        content = read_text(self._locate(name))
        if content is None:
            raise InvalidRequestError(f"there is no file {name!r} in the workspace")
        return content

    def write(self, name: str, content: str) -> bool:
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
        write_text(path, content)
        return is_new

    def _locate(self, name: str) -> Path:
        try:
            root = self.root.resolve()
            path = (root / name).resolve()
        except (OSError, RuntimeError, ValueError):
            # A loop of links, or characters that are invalid in a path.
            raise InvalidRequestError(f"{name!r} is not a path in the workspace files directory") from None
        if path == root or not path.is_relative_to(root):
            raise InvalidRequestError(f"{name!r} is not a path in the workspace files directory")
        return path
