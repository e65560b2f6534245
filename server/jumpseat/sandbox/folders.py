"""List what matters in the folders of a project, and find the repositories behind links.

A command may write to a few places that are not examined as a whole: the inside of git folders, the caches of
package managers, and the session's own files. Git uses a repository there as well if a link in the project leads to
it, or into it.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from jumpseat.sandbox.git_folders import Examined, GitSettings, is_git_folder
from jumpseat.sandbox.obeyed_files import is_obeyed, obeyed_inside

SKIPPED: Final = frozenset(
    {"node_modules", ".venv", "venv", ".tox", ".nox", "__pycache__", ".mypy_cache", ".ruff_cache"}
)
"""Folders of installed packages and caches, in which no editor is started. They are only searched for
repositories: git runs in each one that the index of another one names, wherever it is."""

MAX_BEHIND: Final = 20_000
"""Limit of the folders behind links that are examined."""


class Folder(Struct):
    """The entries of one folder that matter, as long as its identity and time of change stay the same.

    ``folders`` are to be examined, ``installed`` those of installed packages. ``found`` are files that configure
    programs, ``git`` git folders, and ``links`` the other links.
    """

    state: tuple[int, int, int]
    folders: list[str] = field(default_factory=list[str])
    found: list[str] = field(default_factory=list[str])
    git: list[str] = field(default_factory=list[str])
    installed: list[str] = field(default_factory=list[str])
    links: list[str] = field(default_factory=list[str])


def read_folder(path: str, known: Mapping[str, Folder], *, installed: bool = False) -> Folder | None:
    """Return what matters in a folder, as it is ``known`` if it has not changed; ``None`` if it is gone.

    A folder that can be entered and not listed is itself among what is ``found``: git works in it as in any other.
    """
    try:
        status = os.lstat(path)
    except OSError:
        return None
    state = status.st_dev, status.st_ino, status.st_ctime_ns
    before = known.get(path)
    if before is not None and before.state == state:
        return before
    try:
        with os.scandir(path) as entries:
            return _examine(path, state, list(entries), installed=installed)
    except PermissionError:
        return Folder(state, found=[path]) if status.st_mode & 0o111 else None
    except OSError:
        return None


def are_same(known: Mapping[str, Folder]) -> bool:
    """Return whether no folder has changed."""
    try:
        for path, folder in known.items():
            status = os.lstat(path)
            if folder.state != (status.st_dev, status.st_ino, status.st_ctime_ns):
                return False
    except OSError:
        return False
    return True


def _examine(path: str, state: tuple[int, int, int], entries: list[os.DirEntry[str]], *, installed: bool) -> Folder:
    inside = obeyed_inside(path.casefold().split("/")[-2:])
    # A folder that looks like a git folder may be one of the project nevertheless.
    folder = Folder(state, git=[path] if is_git_folder({entry.name for entry in entries}) else [])
    for entry in entries:
        name = entry.name.casefold()
        if not installed and is_obeyed(name, inside):
            folder.found.append(entry.path)
        elif not entry.is_dir(follow_symlinks=False):
            if name == ".git":
                folder.found.append(entry.path)
            elif entry.is_symlink():
                folder.links.append(entry.path)
        elif name == ".git":
            folder.git.append(entry.path)
            if entry.name != name:
                # For git, any other folder, unless the file system ignores case.
                folder.folders.append(entry.path)
        elif installed or name not in SKIPPED:
            folder.folders.append(entry.path)
        else:
            folder.installed.append(entry.path)
    return folder


class LinkedRepositories:
    """The repositories behind links of a project. Remembers folders that have not changed."""

    def __init__(self, git: GitSettings) -> None:
        self._git = git
        self._known: dict[str, Folder] = {}
        self.complete = True

    def harmful(self, links: Iterable[str], corners: Sequence[str], known: Container[str]) -> Iterator[str]:
        """Yield the links behind which git finds a repository whose settings may run a program.

        ``corners`` are the real paths of folders that commands may write to and that are examined in no other way,
        apart from the git folders ``known``. Not ``complete`` if there are too many folders.
        """
        before, self._known = self._known, {}
        self.complete = True
        for link in links:
            if any(self._runs_something(folder, known) for folder in self._behind(link, corners, before)):
                yield link

    def _behind(self, link: str, corners: Sequence[str], before: Mapping[str, Folder]) -> Iterator[Folder]:
        """Yield the folders in ``corners`` to which a link leads, also by way of others."""
        waiting, seen = list(_around(link, corners)), set[str]()
        while waiting:
            path, with_below = waiting.pop()
            if path in seen:
                continue
            if len(self._known) >= MAX_BEHIND:
                self.complete = False
                return
            folder = self._known.get(path) or read_folder(path, before, installed=True)
            if folder is None:
                continue
            self._known[path] = folder
            yield folder
            if with_below:
                seen.add(path)
                waiting += [(below, True) for below in folder.folders]
                waiting += [found for below in folder.links for found in _around(below, corners)]

    def _runs_something(self, folder: Folder, known: Container[str]) -> bool:
        return bool(folder.found) or any(self._is_harmful(git) for git in folder.git if git not in known)

    def _is_harmful(self, folder: str) -> bool:
        examined = Examined()
        files = list(self._git.files_of(folder, examined))
        return bool(examined.steps) or not all(self._git.is_harmless(path, examined) for path in files)


def _around(link: str, corners: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield the target of a link with ``True``, and the folders around it, where git looks as well, with ``False``.

    Yields nothing unless the target is in one of ``corners``.
    """
    path = target = os.path.realpath(link)
    corner = next((path for path in corners if target == path or target.startswith(f"{path}/")), None)
    while corner is not None and f"{path}/".startswith(f"{corner}/"):
        yield path, path == target
        path = os.path.dirname(path)
