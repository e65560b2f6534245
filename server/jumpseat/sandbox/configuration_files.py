"""Find the files in a session's folders that configure programs outside of the sandbox, and new ones among them.

A command that changes such a file can make another program run something outside: git runs hooks, editors run
tasks, and this server runs MCP servers. Existing files are made read-only for commands. A file that did not
exist cannot be protected without leaving an empty one behind, so the folders are compared after each command, and
new files are moved away (:func:`move_away`).
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct, field

from jumpseat.sandbox.git_files import is_git_folder, is_harmless, read_small, settings_of
from jumpseat.sandbox.places import (
    CONFIGURATION,
    CONFIGURATION_IN_GITHUB,
    CONFIGURATION_SUFFIXES,
    START_FILES,
)
from jumpseat.system.file_trees import walk
from jumpseat.system.private_files import create_private_folder

SKIPPED: Final = frozenset(
    {"node_modules", ".venv", "venv", ".tox", ".nox", "__pycache__", ".mypy_cache", ".ruff_cache"}
)
"""Folders of installed packages and caches, in which nobody starts git or an editor; they are not examined."""

MAX_FOLDERS: Final = 50_000
"""Limit of the folders that are examined; the rest of a larger project is ignored."""

MAX_CONTENTS: Final = 1000
"""Limit of the files that are examined in one folder that configures a program and cannot be made read-only."""

Identity: TypeAlias = tuple[int, ...]
"""Device and inode of a file, and the time of its last change if it is a link or cannot be made read-only."""


class _Folder(Struct):
    """The entries of one folder that matter, as long as its identity and time of change stay the same."""

    state: tuple[int, int, int]
    folders: list[str]
    found: list[str]
    git: list[str]


class Snapshot(Struct):
    """The configuration files at one time, with their identities by path. ``git`` are the git folders.

    ``contents`` are those of small files that cannot be made read-only.
    """

    files: dict[str, Identity] = field(default_factory=dict[str, Identity])
    git: set[str] = field(default_factory=set[str])
    contents: dict[str, bytes] = field(default_factory=dict[str, bytes])


class ConfigurationFiles:
    """The configuration files below the folders of one session. Remembers folders that have not changed.

    ``home`` is the home folder of the user, ``own`` that of the server, which commands cannot reach.
    """

    def __init__(self, home: Path, own: Path) -> None:
        self._home = str(home)
        self._own = str(own)
        self._known: dict[str, _Folder] = {}

    def snapshot(self, roots: Iterable[Path], git_folders: Iterable[Path] = (), *, contents: bool) -> Snapshot:
        """Examine the folders below ``roots``, and git folders elsewhere. Blocks on the file system.

        ``contents`` are kept where the mechanism cannot make files read-only.
        """
        snapshot = Snapshot()
        seen: dict[str, _Folder] = {}
        paths = list(self._paths(map(str, roots), seen, snapshot.git))
        self._known = seen
        snapshot.git.update(map(str, git_folders))
        paths += [path for folder in snapshot.git for path in settings_of(folder)]
        if contents:
            paths = [below for path in paths for below in _contents(path)]
        for path in paths:
            if path == self._own or path.startswith(f"{self._own}/"):
                continue
            with suppress(OSError):
                status = os.lstat(path)
                identity: Identity = (status.st_dev, status.st_ino)
                if stat.S_ISLNK(status.st_mode) or (contents and stat.S_ISREG(status.st_mode)):
                    # Nothing keeps a command from replacing this file by one that gets the same inode.
                    identity += (status.st_ctime_ns,)
                snapshot.files[path] = identity
                if contents and stat.S_ISREG(status.st_mode) and (data := read_small(path)) is not None:
                    snapshot.contents[path] = data
        return snapshot

    def _paths(self, roots: Iterable[str], seen: dict[str, _Folder], git: set[str]) -> Iterator[str]:
        waiting = list(roots)
        if self._home in waiting:
            yield from (path for name in START_FILES if os.path.lexists(path := f"{self._home}/{name}"))
        while waiting and len(seen) < MAX_FOLDERS:
            path = waiting.pop()
            folder = None if path in seen or path == self._own else self._folder(path)
            if folder is not None:
                seen[path] = folder
                waiting += folder.folders
                git.update(folder.git)
                yield from folder.found

    def _folder(self, path: str) -> _Folder | None:
        try:
            status = os.lstat(path)
            state = status.st_dev, status.st_ino, status.st_ctime_ns
            known = self._known.get(path)
            if known is not None and known.state == state:
                return known
            with os.scandir(path) as entries:
                return _examine(path, state, list(entries))
        except OSError:
            return None


def _contents(path: str) -> Iterator[str]:
    """Yield ``path`` if it is a file, else the files below it."""
    if os.path.islink(path) or not os.path.isdir(path):
        yield path
        return
    count = 0
    for folder, _, names in walk(path):
        for name in names:
            count += 1
            if count > MAX_CONTENTS:
                return
            yield f"{folder}/{name}"


def _examine(path: str, state: tuple[int, int, int], entries: list[os.DirEntry[str]]) -> _Folder:
    if is_git_folder({entry.name for entry in entries}):
        return _Folder(state, [], [], [path])
    in_github = os.path.basename(path).casefold() == ".github"
    folder = _Folder(state, [], [], [])
    for entry in entries:
        name = entry.name.casefold()
        if (
            name in CONFIGURATION
            or name.endswith(CONFIGURATION_SUFFIXES)
            or (in_github and name in CONFIGURATION_IN_GITHUB)
        ):
            folder.found.append(entry.path)
        elif not entry.is_dir(follow_symlinks=False):
            if name == ".git":
                folder.found.append(entry.path)
        elif name == ".git":
            folder.git.append(entry.path)
        elif name not in SKIPPED:
            folder.folders.append(entry.path)
    return folder


def new_files(before: Snapshot, after: Snapshot) -> list[str]:
    """Return the files that configure programs and were not there before, in the order of their paths.

    A file that was moved along with its folder is the same file. A new repository counts only if its settings can
    make git run a program.
    """
    known = set(before.files.values())
    return sorted(
        path
        for path, identity in after.files.items()
        if identity not in known and not (_is_of_git(path, after.git) and is_harmless(path, after.git))
    )


def _is_of_git(path: str, git_folders: set[str]) -> bool:
    return os.path.basename(path) == ".git" or any(path.startswith(f"{folder}/") for folder in git_folders)


def restore(path: str, data: bytes) -> None:
    """Write the former contents of a file that was moved away.

    Raises:
        OSError: the file exists, or cannot be written.
    """
    if sys.platform == "win32":
        raise OSError("not available on Windows")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path, flags, 0o644), "wb") as file:
        file.write(data)


def move_away(path: str, roots: Iterable[Path], target: Path) -> Path | None:
    """Move ``path``, which is below one of ``roots``, into the folder ``target``; return where it is now.

    No link in the path is followed: a running process could replace a folder by a link. If ``target`` is on another
    file system, the file is renamed in its folder instead. Returns ``None`` if the file is gone.
    """
    root = next((str(root) for root in roots if Path(path).is_relative_to(root)), None)
    if root is None:
        return None
    if sys.platform == "win32":
        return None
    *above, name = Path(path).relative_to(root).parts
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(root, flags)
        try:
            for part in above:
                inner = os.open(part, flags, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = inner
            return _rename(descriptor, name, Path(path), target)
        finally:
            os.close(descriptor)
    except OSError:
        return None


def _rename(descriptor: int, name: str, path: Path, target: Path) -> Path:
    create_private_folder(target)
    moved = _unused(target, name)
    try:
        os.rename(name, moved, src_dir_fd=descriptor)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        moved = _unused(path.parent, f"{name.lstrip('.')}.quarantined")
        os.rename(name, moved.name, src_dir_fd=descriptor, dst_dir_fd=descriptor)
    return moved


def _unused(folder: Path, name: str) -> Path:
    number, path = 1, folder / name
    while os.path.lexists(path):
        number += 1
        path = folder / f"{name}.{number}"
    return path
