"""Read the files and folders of a project, possibly an untrusted one: regular files of limited size.

Whatever a folder holds (pipes, devices, endless files, a million entries), a read ends and takes bounded memory.
Disks may be slow, so an event loop reads in a thread.
"""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def read_regular(path: Path, limit: int, within: Path | None = None) -> bytes:
    """Read at most ``limit`` bytes of a regular file; links must not lead out of the folder ``within``.

    Never waits for a pipe or a device, whatever replaces the file in the meantime.

    Raises:
        OSError: the file cannot be read.
        ValueError: the path is not a regular file, or its target is outside of ``within``.
    """
    # Most files that are looked for do not exist, and resolving a path takes a call for each of its folders.
    os.lstat(path)
    real = Path(os.path.realpath(path))
    if within is not None and not real.is_relative_to(os.path.realpath(within)):
        raise ValueError("leads out of the project")
    fd = os.open(real, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ValueError("not a regular file")
        return file.read(limit)


def decode_text(data: bytes) -> str:
    """Decode a text file: UTF-8, or what its byte order mark says; Windows PowerShell writes UTF-16."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    return data.decode("utf-8", "replace")


def read_whole(path: Path, limit: int, within: Path | None = None) -> bytes:
    """Read all of a regular file, as :func:`read_regular` does.

    Raises:
        OSError: the file cannot be read.
        ValueError: the path is not a regular file, its target is outside of ``within``, or the file is larger than
            ``limit`` bytes.
    """
    content = read_regular(path, limit + 1, within)
    if len(content) > limit:
        raise ValueError(f"more than {limit} bytes")
    return content


class Entry(NamedTuple):
    """An entry of a folder; ``is_folder`` also holds for a link to a folder."""

    name: str
    is_folder: bool
    is_link: bool


def scan_folder(folder: Path) -> Iterator[Entry]:
    """Yield the entries of a folder one by one, unsorted; none if the folder cannot be read."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    is_folder = entry.is_dir()
                except OSError:
                    # A link to itself, or into a folder without the right to search.
                    is_folder = False
                yield Entry(entry.name, is_folder, entry.is_symlink())
    except (OSError, ValueError):
        return


def exists(path: Path) -> bool:
    """Return whether there is anything at a path, a broken link included."""
    try:
        return os.path.lexists(path)
    except ValueError:
        return False


def is_there(path: str) -> bool:
    """Return whether a path exists. Where it does not, :func:`os.path.exists` takes twice as long."""
    try:
        return os.access(path, os.F_OK)
    except ValueError:
        return False


def upward(folder: Path) -> Iterator[str]:
    """Yield a folder and those above it. With strings: Path takes longer, and this runs with every prompt."""
    current = str(folder)
    while True:
        yield current
        parent = os.path.dirname(current)
        if parent == current:
            return
        current = parent


def repository_root(folder: Path) -> Path:
    """Return the root of the repository of ``folder``, or ``folder`` itself."""
    root = next((above for above in upward(folder) if is_there(f"{above}{os.sep}.git")), None)
    return folder if root is None else Path(root)


def is_link(path: str) -> bool | None:
    """Return whether there is a link at ``path``; ``None`` if there is nothing, or that cannot be told."""
    try:
        return stat.S_ISLNK(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return None
