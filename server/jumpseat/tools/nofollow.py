"""Opening what was judged: a path whose links are all followed already, along which no other link is followed.

Permission is given for the place that a path leads to. A link that is put in its way afterwards would lead the call
elsewhere, so each folder is opened from the one before it, and links in between are refused. Systems that cannot
open so (Windows) open the path as it is.
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

# With a path only, folders that may be entered and not listed are no hindrance.
_FOLDER: Final = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)


class LeadsElsewhereError(OSError):
    """There is a link where there was none when the path was judged."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.ELOOP, "it leads elsewhere now than when permission was given", path)


def open_place(place: Path) -> int:
    """Open a file or folder for reading; the descriptor is the caller's to close. A pipe is not waited for.

    Raises:
        LeadsElsewhereError: a link is in the way.
        OSError: it cannot be opened.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
    if not CAN_WALK:
        return os.open(place, flags)
    with _folder(place.parent) as folder:
        return _open(place.name or ".", flags, folder, place)


def create_file(place: Path, data: bytes) -> None:
    """Make a file with all the folders on the way to it, or nothing of the file.

    Raises:
        FileExistsError: there is something already, or a file where a folder should be; ``filename`` says where.
        LeadsElsewhereError: a link is in the way.
        OSError: it cannot be written.
    """
    if not CAN_WALK:
        place.parent.mkdir(parents=True, exist_ok=True)
        _write_new(str(place), data, None, place)
        return
    with _folder(place.parent, make=True) as folder:
        _write_new(place.name, data, folder, place)


def replace_file(place: Path, data: bytes, mode: int) -> None:
    """Write a new file beside a file and move it there, so that no reader ever sees half of it.

    Raises:
        LeadsElsewhereError: a link is in the way.
        OSError: it cannot be written.
    """
    draft = f".{place.name[:32]}.{uuid.uuid4().hex}.tmp"
    if not CAN_WALK:
        _write_new(str(place.with_name(draft)), data, None, place, mode)
        os.replace(place.with_name(draft), place)
        return
    with _folder(place.parent) as folder:
        if _is_link(place.name, folder):
            raise LeadsElsewhereError(str(place))
        _write_new(draft, data, folder, place, mode)
        try:
            os.replace(draft, place.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(draft, dir_fd=folder)
            raise


@contextlib.contextmanager
def _folder(path: Path, *, make: bool = False) -> Generator[int]:
    """A descriptor of a folder, entered from the root without following a link; made where it may be."""
    fd = os.open(path.anchor, _FOLDER)
    try:
        for depth, name in enumerate(path.parts[1:], start=2):
            here = Path(*path.parts[:depth])
            try:
                inner = _open(name, _FOLDER, fd, here)
            except FileNotFoundError:
                if not make:
                    raise
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, dir_fd=fd)
                inner = _open(name, _FOLDER, fd, here)
            except NotADirectoryError:
                if make:
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
        # Which number a link gets depends on the system, and on what is opened.
        if _is_link(name, folder):
            raise LeadsElsewhereError(str(path)) from None
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
        # Half a file would make the next attempt fail.
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=folder)
        raise
