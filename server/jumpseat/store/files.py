"""The files that clients keep in a session's folder: the plan, and what lies under ``files``.

Names come from clients and are judged by where they lead, links included: nothing outside the folder is read or
written.
"""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Final

from jumpseat.errors import InvalidRequestError, StoreError

LARGEST_BYTES: Final = 16 * 1024 * 1024
"""What is longer does not go into one answer."""


def read_text(path: Path) -> str | None:
    """A file's text; ``None`` where there is none.

    Raises:
        StoreError: it cannot be read, or is too large.
    """
    try:
        if path.is_dir() or not path.exists():
            return None
        if not path.is_file():
            raise StoreError(f"cannot read {path.name!r}: it is not a regular file")
        size = path.stat().st_size
        if size > LARGEST_BYTES:
            raise StoreError(f"cannot read {path.name!r}: {size} bytes are more than the limit of {LARGEST_BYTES}")
        return path.read_bytes().decode("utf-8", "replace")
    except OSError as error:
        raise StoreError(f"cannot read {path.name!r}: {error.strerror or error}") from error


def write_text(path: Path, content: str, *, private: bool = False) -> None:
    """Write a file in one step, with the folders on the way: readers see the old text or the new one.

    A ``private`` one is for the eyes of its owner alone.

    Raises:
        StoreError: it cannot be written.
    """
    draft = path.parent / f".{uuid.uuid4().hex}.tmp"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            if private:
                draft.touch(0o600)
            draft.write_bytes(content.encode())
            draft.replace(path)
        except BaseException:
            with suppress(OSError):
                draft.unlink()
            raise
    except (FileExistsError, NotADirectoryError):
        raise StoreError(f"cannot write {path.name!r}: a file is in the way of its folder") from None
    except (OSError, UnicodeEncodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise StoreError(f"cannot write {path.name!r}: {reason or error}") from error


def remove_file(path: Path) -> bool:
    """Remove a file; ``False`` where there is none.

    Raises:
        StoreError: it cannot be removed.
    """
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StoreError(f"cannot remove {path.name!r}: {error.strerror or error}") from error
    return True


class WorkspaceFiles:
    """The ``files`` folder of one session, made when something is put into it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def names(self) -> list[str]:
        """All files, as paths relative to the folder; links are left out, for they may lead anywhere."""
        found: list[str] = []
        for folder, _, files in os.walk(self.root):
            for name in files:
                path = Path(folder, name)
                if path.is_file() and not path.is_symlink():
                    # Names that are no text cannot be told, and JSON could not carry them.
                    with suppress(UnicodeEncodeError):
                        found.append(path.relative_to(self.root).as_posix().encode().decode())
        return sorted(found)

    def read(self, name: str) -> str:
        """A file's text.

        Raises:
            InvalidRequestError: there is none, or the name leads out of the folder.
            StoreError: it cannot be read.
        """
        content = read_text(self._locate(name))
        if content is None:
            raise InvalidRequestError(f"there is no file {name!r} in the workspace")
        return content

    def write(self, name: str, content: str) -> bool:
        """Create or replace a file; returns whether it is new.

        Raises:
            InvalidRequestError: the name leads out of the folder, or to a folder in it.
            StoreError: it cannot be written.
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
            # A circle of links, or characters that no path can have.
            raise InvalidRequestError(f"{name!r} is not a path in the workspace files directory") from None
        if path == root or not path.is_relative_to(root):
            raise InvalidRequestError(f"{name!r} is not a path in the workspace files directory")
        return path
