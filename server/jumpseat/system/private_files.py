"""Files and folders that only their owner can read, such as all those that the server itself writes.

The umask stays that of the user, because functions of declared tools and adapters create files in this process, as
do the programs that they start.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

from jumpseat.system.file_trees import walk

_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def owner_only(path: str, flags: int) -> int:
    """Open a file, with mode 0600 if it is new; an ``opener`` for :func:`open`."""
    return os.open(path, flags, 0o600)


def create_private_folder(path: Path) -> bool:
    """Create a folder and its missing parents, all with mode 0700; return whether the folder is new.

    An existing folder is left as it is.

    Raises:
        OSError: the folder cannot be created, or the path is that of a file.
    """
    try:
        os.mkdir(path, 0o700)
    except FileNotFoundError:
        create_private_folder(path.parent)
        return create_private_folder(path)
    except OSError:
        # Not only FileExistsError: systems may name another reason first.
        if not path.is_dir():
            raise
        return False
    return True


def write_new_file(path: Path, data: bytes) -> None:
    """Write a file that must not exist, and create the missing folders above it.

    Raises:
        OSError: the file exists or cannot be written.
    """
    create_private_folder(path.parent)
    with open(path, "xb", opener=owner_only) as file:
        file.write(data)


def restrict_home(home: Path, written: Collection[str]) -> list[Path]:
    """Remove the rights of other users on ``home`` and its files, so that they reach nothing in the folder.

    If other users had rights, returns the folders with the names ``written``, for :func:`restrict_contents`: older
    versions of the server gave rights on their contents, too.
    """
    if sys.platform == "win32" or not _restrict(home):
        return []
    wide: list[Path] = []
    with suppress(OSError), os.scandir(home) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                _restrict(Path(entry))
            elif entry.name in written and entry.is_dir(follow_symlinks=False):
                wide.append(Path(entry))
    return wide


def restrict_contents(folder: Path) -> None:
    """Remove the rights of other users on ``folder`` and everything in it; links are not followed."""
    _restrict(folder)
    for parent, folders, files in walk(folder):
        for name in (*folders, *files):
            path = Path(parent, name)
            if not path.is_symlink():
                _restrict(path)


def _restrict(path: Path) -> bool:
    """Remove the rights of other users on ``path``; return whether they had any."""
    try:
        mode = path.stat().st_mode
        if mode & _OTHERS:
            path.chmod(stat.S_IMODE(mode) & ~_OTHERS)
            return True
    except OSError:
        # Missing, or owned by another user.
        pass
    return False
