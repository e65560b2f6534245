"""The view of a program that needs an interpreter alone: no project, no home, no network, nothing to write."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from jumpseat.sandbox.view import View, real_paths

_OF_THE_SYSTEM: Final = frozenset(
    {"bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "nix", "gnu", "proc", "sys", "dev"}
)
"""The folders with programs and libraries, and those that the mechanisms replace."""

_LIBRARIES: Final = "/etc/ld.so.cache"
"""The list of libraries, without which some interpreters do not start."""


def interpreter() -> str:
    """Return the path of the Python interpreter itself, not that of a link in a virtual environment."""
    return os.path.realpath(sys.executable)


def closed_view(folders: Iterable[Path]) -> View:
    """Return a view with the programs of the system and the interpreter alone; blocks on the file system.

    ``folders`` are hidden wherever they are.
    """
    shown = tuple(real_paths((interpreter(), sys.base_prefix, _LIBRARIES)))
    hidden = [*folders]
    if sys.platform == "linux":
        with os.scandir("/") as entries:
            found = [entry for entry in entries if entry.name not in _OF_THE_SYSTEM and not entry.is_symlink()]
        hidden += [Path(entry.path) for entry in found]
    root = Path("/")
    return View(
        hidden=tuple(path for path in real_paths(hidden) if path != root and path not in shown),
        shown=shown,
        alone=True,
    )
