"""Open, write and delete files without following links.

A path was judged, or recorded, at the place that it resolved to. A link that is created on the way afterwards would
lead to another place, so each folder is opened relative to its parent, and links are refused. Systems without such
calls (Windows) open the path as it is.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
import uuid
from collections.abc import Generator
from pathlib import Path
from typing import Final

CAN_WALK: Final = hasattr(os, "O_NOFOLLOW") and {os.open, os.mkdir, os.unlink, os.stat} <= os.supports_dir_fd

# O_PATH opens folders that may be entered but not listed, too.
_FOLDER: Final = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)


class LinkInPathError(OSError):
    """The path contains a link that it did not contain when it was judged or recorded."""

    def __init__(self, path: str) -> None:
        super().__init__(
            errno.ELOOP, "it now resolves to a different location than when permission was given", path
        )


def open_place(place: Path) -> int:
    """Open a file or folder for reading and return the descriptor, which the caller closes. Never waits for a pipe.

    Raises:
        LinkInPathError: the path contains a link.
        OSError: the file cannot be opened.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
    if not CAN_WALK:
        return os.open(place, flags)
    with open_folder(place.parent) as folder:
        return _open(place.name or ".", flags, folder, place)


def mode_of(place: Path) -> int | None:
    """Return the mode of a file or folder; ``None`` if there is none.

    Raises:
        LinkInPathError: the path contains a link.
        OSError: the path cannot be looked at.
    """
    if not CAN_WALK:
        return place.stat().st_mode if place.exists() else None
    try:
        with open_folder(place.parent) as folder:
            mode = os.stat(place.name or ".", dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(mode):
        raise LinkInPathError(str(place))
    return mode


def create_file(place: Path, data: bytes, mode: int | None = None, *, folder_mode: int = 0o777) -> None:
    """Create a file and its parent folders; leave no partial file on failure.

    A new folder gets ``folder_mode`` without the bits of the umask.

    Raises:
        FileExistsError: the path exists, or a parent is a file; ``filename`` is the existing path.
        LinkInPathError: the path contains a link.
        OSError: the file cannot be written.
    """
    if not CAN_WALK:
        place.parent.mkdir(parents=True, exist_ok=True)
        _write_new(str(place), data, None, place, mode)
        return
    with open_folder(place.parent, make=folder_mode) as folder:
        _write_new(place.name, data, folder, place, mode)


def replace_file(place: Path, data: bytes, mode: int, *, folder_mode: int | None = None) -> None:
    """Replace a file by a new one written beside it, so that no reader sees partial content.

    Missing parent folders are created with ``folder_mode``, if that is given.

    Raises:
        LinkInPathError: the path contains a link.
        OSError: the file cannot be written.
    """
    draft = f".{place.name[:32]}.{uuid.uuid4().hex}.tmp"
    if not CAN_WALK:
        if folder_mode is not None:
            place.parent.mkdir(parents=True, exist_ok=True)
        _write_new(str(place.with_name(draft)), data, None, place, mode)
        os.replace(place.with_name(draft), place)
        return
    with open_folder(place.parent, make=folder_mode) as folder:
        if _is_link(place.name, folder):
            raise LinkInPathError(str(place))
        _write_new(draft, data, folder, place, mode)
        try:
            os.replace(draft, place.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(draft, dir_fd=folder)
            raise


def delete_file(place: Path) -> None:
    """Delete a file.

    Raises:
        LinkInPathError: the path contains a link.
        OSError: the file cannot be deleted.
    """
    if not CAN_WALK:
        place.unlink()
        return
    with open_folder(place.parent) as folder:
        if _is_link(place.name, folder):
            raise LinkInPathError(str(place))
        os.unlink(place.name, dir_fd=folder)


@contextlib.contextmanager
def open_folder(path: Path, *, make: int | None = None) -> Generator[int]:
    """Open a folder from the root without following links; create missing folders with the mode ``make``, if given.

    The descriptor may not allow listing the folder, and is closed after the block.

    Raises:
        FileExistsError: a missing folder cannot be created, because a parent is a file.
        LinkInPathError: the path contains a link.
        OSError: the folder cannot be opened or created.
    """
    fd = os.open(path.anchor, _FOLDER)
    try:
        for depth, name in enumerate(path.parts[1:], start=2):
            here = Path(*path.parts[:depth])
            try:
                inner = _open(name, _FOLDER, fd, here)
            except FileNotFoundError:
                if make is None:
                    raise
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, make, dir_fd=fd)
                inner = _open(name, _FOLDER, fd, here)
            except NotADirectoryError:
                if make is not None:
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(here)) from None
                raise
            os.close(fd)
            fd = inner
        yield fd
    finally:
        os.close(fd)


def _open(name: str, flags: int, folder: int, path: Path) -> int:
    # CAN_WALK is false on Windows.
    assert sys.platform != "win32"
    try:
        return os.open(name, flags | os.O_NOFOLLOW, dir_fd=folder)
    except OSError as error:
        # The error number for a link depends on the system and on the flags.
        if _is_link(name, folder):
            raise LinkInPathError(str(path)) from None
        error.filename = str(path)
        raise


def _is_link(name: str, folder: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _write_new(name: str, data: bytes, folder: int | None, path: Path, mode: int | None = None) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        fd = os.open(name, flags, 0o666 if mode is None else 0o600, dir_fd=folder)
    except OSError as error:
        error.filename = str(path)
        raise
    try:
        with open(fd, "wb") as file:
            file.write(data)
            file.flush()
            if mode is not None:
                os.chmod(fd, stat.S_IMODE(mode))
    except BaseException:
        # A partial file would make the next attempt fail.
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=folder)
        raise
