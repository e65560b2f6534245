"""Read files that a project, possibly an untrusted one, puts at certain places: regular files of limited size."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def read_regular(path: Path, limit: int, within: Path | None = None) -> bytes:
    """Read at most ``limit`` bytes of a regular file; links must not lead out of the folder ``within``.

    Never waits for a pipe or a device, whatever replaces the file in the meantime.

    Raises:
        OSError: the file cannot be read.
        ValueError: the path is not a regular file, or its target is outside of ``within``.
    """
    real = Path(os.path.realpath(path))
    if within is not None and not real.is_relative_to(os.path.realpath(within)):
        raise ValueError("leads out of the project")
    fd = os.open(real, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ValueError("not a regular file")
        return file.read(limit)


def repository_root(folder: Path) -> Path:
    """Return the root of the repository of ``folder``, or ``folder`` itself."""
    # Not Path.exists, which raises if a parent folder may not be searched.
    return next((parent for parent in (folder, *folder.parents) if os.path.exists(parent / ".git")), folder)
