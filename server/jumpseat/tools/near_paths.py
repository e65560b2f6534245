"""The paths that a model may have meant by one that does not exist."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from jumpseat.system.file_trees import walk
from jumpseat.tools.files import is_ignored

MOST_NAMED: Final = 3
MOST_LOOKED_AT: Final = 20_000
"""Files and folders that are looked at."""
ALIKE: Final = 0.75


def near_paths(path: str, root: Path, ignored: frozenset[str]) -> list[str]:
    """Return the files and folders below the working directory ``root`` with the name of ``path``, or one like it.

    They are relative to it, best first. Blocks while it looks.
    """
    found = [name for name in _below(root, ignored) if name.isprintable()]
    return _best(os.path.relpath(root / os.path.expanduser(path), root), found)


def question(paths: list[str]) -> str:
    """Return the sentence about these paths for the model."""
    *others, last = paths
    return f"Did you mean {', '.join(others)} or {last}?" if others else f"Did you mean {last}?"


def _below(root: Path, ignored: frozenset[str]) -> Iterator[str]:
    left = MOST_LOOKED_AT
    for folder, folders, others in walk(root):
        inside = os.path.relpath(folder, root)
        prefix = "" if inside == "." else f"{inside}/"
        folders[:] = [name for name in folders if name != ".git" and not is_ignored(f"{prefix}{name}/", ignored)]
        for name in (*folders, *others):
            if not is_ignored(f"{prefix}{name}", ignored):
                yield f"{prefix}{name}"
        left -= len(folders) + len(others)
        if left <= 0:
            return


def _best(path: str, candidates: Iterable[str]) -> list[str]:
    by_name: dict[str, list[str]] = {}
    for candidate in candidates:
        by_name.setdefault(_name(candidate), []).append(candidate)
    wanted = _name(path)
    names = [wanted] if wanted in by_name else get_close_matches(wanted, by_name, MOST_NAMED, ALIKE)
    folders = set(path.casefold().split("/")[:-1])

    def order(candidate: str) -> tuple[int, int, str]:
        parts = candidate.casefold().split("/")[:-1]
        return -len(folders.intersection(parts)), len(parts), candidate

    return [found for name in names for found in sorted(by_name[name], key=order)][:MOST_NAMED]


def _name(path: str) -> str:
    return path.rpartition("/")[2].casefold()
