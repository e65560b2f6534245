"""Find the files that a command touches in the folders it names, such as ``folder/name`` of ``cp name folder``.

Folders that a command copies, moves or removes are listed, as far as a bounded number of entries allows. No file is
opened or changed.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from jumpseat.agent.permissions.paths import PathScope, is_protected
from jumpseat.agent.permissions.rules import ResolvedPath
from jumpseat.agent.shell.effects import Placement
from jumpseat.sandbox.obeyed_files import INSIDE, obeyed_inside
from jumpseat.system.regular_files import exists, scan_folder

MAX_PAIRS: Final = 256
MAX_ENTRIES: Final = 2000
"""Limit of the entries of folders that are listed for one command."""


class Targets(Struct):
    """The files that one command touches in folders.

    ``protected`` means that one of them may configure later calls; ``complete`` that no others are touched.
    """

    paths: list[ResolvedPath] = field(default_factory=list[ResolvedPath])
    protected: bool = False
    complete: bool = True


class GitWrites(Struct):
    """The protected files that the ``git`` commands of a line may write, relative to the root of the repository.

    ``known`` means that there are no others, ``any`` that a command may write files at all.
    """

    files: dict[str, None] = field(default_factory=dict[str, None])
    known: bool = True
    any: bool = False


class GitPrograms(Struct, frozen=True):
    """The settings and hooks by which git would run programs, for people; ``mark`` is equal for equal ones."""

    shown: tuple[str, ...] = ()
    mark: str = ""


def find_targets(placement: Placement, expanded: Iterable[str], base: Path, path_scope: PathScope) -> Targets:
    """Find the files that a command touches in folders; ``expanded`` are the names that its patterns match."""
    found = Targets()
    names = dict.fromkeys(name for name in (*placement.words, *expanded) if not name.startswith("-"))
    resolved = {name: path_scope.resolve(name, base) for name in names}
    if placement.program == "ln":
        found.protected = any(may_hold_obeyed(name) for name in names)
    if placement.program in ("chmod", "chown", "rm"):
        budget = _Budget()
        for path in resolved.values():
            if path is not None and _holds_protected(path, budget, path_scope):
                found.protected = True
        found.complete = not budget.exceeded
        return found
    pairs = [(name, folder) for folder in names for name in names if name != folder]
    if len(pairs) > MAX_PAIRS:
        # Only the last word, or the value of an option, is the folder of many.
        folders = [folder for folder, path in resolved.items() if path is not None and path.is_folder]
        pairs = [(name, folder) for folder in folders for name in names if name != folder]
    if len(pairs) > MAX_PAIRS:
        found.complete = False
        return found
    budget = _Budget()
    for name, folder in pairs:
        for target in _places(name, folder, resolved[folder]):
            path = path_scope.resolve(target, base)
            if path is None:
                found.complete = False
                continue
            if target != folder:
                found.paths.append(path)
            source = resolved[name]
            if placement.walks and source is not None and source.is_folder:
                _merge(Path(source.real), path, budget, found, path_scope)
    # Entries beyond the budget may be protected.
    found.protected = found.protected or budget.exceeded
    return found


class _Budget(Struct):
    left: int = MAX_ENTRIES

    @property
    def exceeded(self) -> bool:
        return self.left < 0


def _places(name: str, folder: str, path: ResolvedPath | None) -> Iterator[str]:
    """Yield the paths that ``name`` may be copied to, or compared with, if ``folder`` is the destination."""
    last = posixpath.basename(name.rstrip("/"))
    if path is not None and path.is_folder and last not in ("", ".", ".."):
        yield posixpath.join(folder, last)
    else:
        yield folder


def _merge(source: Path, target: ResolvedPath, budget: _Budget, found: Targets, path_scope: PathScope) -> None:
    """Follow the copying of a folder onto ``target``: through links in it, and to protected names."""
    pending = [(source, Path(target.given), exists(Path(target.given)))]
    while pending and not budget.exceeded:
        folder, destination, is_there = pending.pop()
        for entry in _entries(folder, budget):
            place = destination / entry.name
            there = is_there and exists(place)
            if is_protected(ResolvedPath(str(place), str(place)), path_scope):
                found.protected = True
            if there and place.is_symlink() and (path := path_scope.resolve(str(place))) is not None:
                found.paths.append(path)
            if not entry.is_symlink() and entry.is_dir():
                pending.append((entry, place, there))


def may_hold_obeyed(name: str) -> bool:
    """Return whether a folder of this name holds files that programs obey because of it."""
    folder = name.rstrip("/").casefold().split("/")[-2:]
    return any(folder[-1] in names for names in INSIDE) or bool(obeyed_inside(folder))


def _holds_protected(path: ResolvedPath, budget: _Budget, path_scope: PathScope) -> bool:
    """Return whether a folder holds protected files among the entries that the budget allows to list."""
    pending = [Path(path.real)]
    while pending and not budget.exceeded:
        folder = pending.pop(0)
        if _is_bare_repository(folder):
            return True
        for entry in _entries(folder, budget):
            if is_protected(ResolvedPath(str(entry), str(entry)), path_scope):
                return True
            if not entry.is_symlink() and entry.is_dir():
                pending.append(entry)
    return False


def _entries(folder: Path, budget: _Budget) -> Iterator[Path]:
    for entry in scan_folder(folder):
        budget.left -= 1
        if budget.exceeded:
            return
        yield folder / entry.name


def has_bare_repository(folder: Path) -> bool:
    """Return whether git, run in ``folder``, may take files of the project for a repository and its settings."""
    for parent in (folder, *folder.parents):
        if exists(parent / ".git"):
            return False
        if _is_bare_repository(parent):
            return True
    return False


def _is_bare_repository(folder: Path) -> bool:
    # A folder that "commondir" names may hold the rest, settings included.
    return exists(folder / "HEAD") and (
        exists(folder / "commondir") or (exists(folder / "objects") and exists(folder / "refs"))
    )
