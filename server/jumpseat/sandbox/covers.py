"""Keep files that appear while a command runs out of its sight, in folders that hold something hidden.

A mount hides what is at a path when a command begins. If the owner of a hidden file replaces it, as programs do
that store a login, the mount goes with the old file; and nothing hides a new one. So where a folder holds files
that are hidden, or may hold some, the folder itself is hidden, and what commands may see of it is shown again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from jumpseat.sandbox.view import TEMP_FOLDERS, View

MAX_SHOWN: Final = 24
"""Limit of what is shown again, for all folders of a command: bubblewrap takes about 0.25 ms for each mount."""

_NEVER: Final = frozenset({"/", "/dev", "/etc", "/home", "/opt", "/proc", "/sys", "/usr", "/var", "/Users"})
"""Folders that programs need as they are, or that belong to all users."""


def cover(
    view: View, home: Path, folders: Iterable[str], roots: Iterable[Path], is_secret: Callable[[str], bool]
) -> View:
    """Return a view in which ``home``, the folders of hidden files, and ``folders`` show what they have now.

    This is their order, as long as not too much would have to be shown again. Folders that commands may change,
    ``roots``, and those in them stay as they are. ``is_secret`` tells which paths are not shown, because some may
    have appeared since the view was made. Blocks on the file system.
    """
    hidden = set(map(str, view.hidden))
    outer = [*map(str, roots), *map(str, view.writable), *map(str, TEMP_FOLDERS)]
    of_hidden = (os.path.dirname(path) for path in sorted(hidden) if not os.path.isdir(path))
    candidates = [str(home), *of_hidden, *folders]
    shown: list[Path] = []
    links: list[tuple[str, str]] = []
    covered: set[str] = set()
    for folder in dict.fromkeys(candidates):
        if folder in _NEVER or _is_within(folder, outer) or not _is_seen(folder, hidden - covered, view, shown):
            continue
        found = _contents(folder, lambda path: path in hidden or is_secret(path), MAX_SHOWN - len(shown))
        if found is not None:
            covered.add(folder)
            shown += found[0]
            links += found[1]
            hidden.add(folder)
    if not covered:
        return view
    # What is hidden in such a folder needs no mount of its own, and a mount would go with it.
    inner = (path for path in view.hidden if os.path.dirname(path) not in covered)
    return replace(
        view,
        hidden=(*inner, *map(Path, covered)),
        shown=(*view.shown, *(path for path in shown if path not in view.writable)),
        links=tuple(links),
    )


def _contents(
    folder: str, is_hidden: Callable[[str], bool], limit: int
) -> tuple[list[Path], list[tuple[str, str]]] | None:
    """Return the files and folders in a folder that are not hidden, and its links; ``None`` if too many."""
    shown: list[Path] = []
    links: list[tuple[str, str]] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if is_hidden(entry.path):
                    continue
                if entry.is_symlink():
                    links.append((entry.path, os.readlink(entry.path)))
                else:
                    shown.append(Path(entry.path))
                if len(shown) > limit or len(links) > 20 * MAX_SHOWN:
                    return None
    except OSError:
        return None
    return shown, links


def _is_seen(folder: str, hidden: set[str], view: View, shown: Iterable[Path]) -> bool:
    """Return whether a folder is not in a hidden one, or is shown there."""
    visible = {*map(str, view.shown), *map(str, shown)}
    while folder != "/":
        if folder in hidden:
            return False
        if folder in visible:
            return True
        folder = os.path.dirname(folder)
    return True


def _is_within(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)
