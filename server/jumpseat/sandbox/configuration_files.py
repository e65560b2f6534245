"""Find the files in a session's folders that configure programs outside of the sandbox, and new ones among them.

A command that changes such a file can make another program run something outside: git runs hooks, editors run
tasks, and this server runs MCP servers. Existing files are made read-only for commands. A file that did not
exist cannot be protected without leaving an empty one behind, so the folders are compared after each command, and
new files are moved away (:func:`move_away`).
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct, field

from jumpseat.sandbox.places import (
    CONFIGURATION,
    CONFIGURATION_IN_GITHUB,
    CONFIGURATION_SUFFIXES,
    START_FILES,
)
from jumpseat.system.file_trees import walk
from jumpseat.system.nofollow import CAN_WALK, create_file, open_folder
from jumpseat.system.private_files import create_private_folder

MAX_FILE_BYTES: Final = 256 * 1024

MAX_INDEX_BYTES: Final = 16 * 2**20
MAX_INDEXED_FILES: Final = 200
"""Limits of the search for a work tree in the index of a git folder."""

_SETTINGS: Final = ("config", "config.worktree")
_LINKS: Final = ("commondir", "gitdir")

# Patterns of this module are compiled at their first use: most processes run no command.
_HARMLESS: Final = (
    r"core\.(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|worktree"
    r"|autocrlf|eol|quotepath|abbrev|sharedrepository)"
    r"|extensions\.(?:objectformat|worktreeconfig|partialclone|refstorage)"
    r"|remote\..*\.(?:url|pushurl|fetch|push|tagopt|mirror|prune|promisor|partialclonefilter)"
    r"|branch\..*\.(?:remote|merge|rebase|description|vscode-merge-base)"
    r"|submodule\..*\.(?:url|active|path|branch)|submodule\.active"
    r"|user\.(?:name|email)|init\.defaultbranch|gc\.auto|pull\.rebase|push\.default|lfs\.repositoryformatversion"
)
"""The settings that only describe a repository. Any other setting may run a program."""

_REFERENCE: Final = r"core\.hookspath|include(?:if\..*)?\.path"

_HEADER: Final = r'\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]'
_ENTRY: Final = r"([A-Za-z][\w-]*)\s*(?:=\s*(.*))?"
_HELPER: Final = r"\s*-|\s*\"?\w+::"
"""The beginning of an address that git passes to a program (``ext::``), or takes for an option."""


def is_git_folder(names: set[str]) -> bool:
    """Return whether a folder with these entries is a git folder, whatever its name."""
    # Git runs hooks without any settings, and takes the settings of a folder that "commondir" names.
    return "HEAD" in names and not names.isdisjoint(("objects", "commondir"))


def settings_of(folder: str, trees: Iterable[str] = ()) -> Iterator[str]:
    """Yield the files and folders that configure git, of a git folder, its submodules and its work trees.

    ``trees`` are work trees that nothing in the folder names.
    """
    # Not recursive: a command can nest folders deeper than Python's stack.
    waiting = [folder]
    while waiting:
        below = waiting.pop()
        for name in (*_SETTINGS, "commondir", "hooks"):
            if os.path.lexists(path := f"{below}/{name}"):
                yield path
        yield from _named_paths(below, trees if below == folder else ())
        for tree in _folders(f"{below}/worktrees"):
            for name in (_SETTINGS[1], *_LINKS):
                if os.path.lexists(path := f"{tree}/{name}"):
                    yield path
            waiting += _submodules(tree)
        waiting += _submodules(below)


def _submodules(folder: str) -> Iterator[str]:
    """Yield the git folders of the submodules in the git folder of a repository or of a linked work tree."""
    waiting = _folders(f"{folder}/modules")
    while waiting:
        below = waiting.pop()
        if os.path.lexists(f"{below}/HEAD"):
            yield below
        else:
            # The name of a submodule may contain slashes.
            waiting += _folders(below)


def _folders(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def is_harmless(path: str, git_folders: set[str]) -> bool:
    """Return whether a new file of a git folder, or a new ``.git`` file, cannot make git run a program.

    ``git_folders`` are all git folders that are examined.
    """
    name = os.path.basename(path)
    if os.path.islink(path):
        return False
    if name == "hooks":
        return _only_samples(path)
    if os.path.basename(os.path.dirname(path)) == "hooks":
        return name.endswith(".sample")
    text = _read(path)
    if text is None:
        return False
    if name in _SETTINGS:
        return only_describes(text)
    target = os.path.normpath(os.path.join(os.path.dirname(path), text.removeprefix("gitdir:").strip()))
    if name == "gitdir":
        # The path of a work tree, from which git reads nothing but the link back.
        return os.path.basename(target) == ".git"
    return name in (".git", "commondir") and any(
        target == folder or target.startswith(f"{folder}/") for folder in git_folders
    )


def only_describes(config: str) -> bool:
    """Return whether all settings in the text of a git configuration only describe a repository."""
    for entry in _entries(config):
        if entry is None or not re.fullmatch(_HARMLESS, entry[0]):
            return False
        if entry[0].endswith("url") and re.match(_HELPER, entry[1]):
            return False
    return True


def _entries(config: str) -> Iterator[tuple[str, str] | None]:
    """Yield the settings and their values; ``None`` for a line that is not understood."""
    section = ""
    for raw in config.splitlines():
        line = raw.strip()
        if header := re.match(_HEADER, line):
            section = ".".join(filter(None, (header[1].casefold(), header[2])))
            line = line[header.end() :].strip()
        if line and line[0] not in "#;":
            entry = None if line.endswith("\\") else re.fullmatch(_ENTRY, line)
            yield None if entry is None else (f"{section}.{entry[1].casefold()}", entry[2] or "")


def _named_paths(folder: str, trees: Iterable[str]) -> Iterator[str]:
    """Yield the files and folders with further settings and hooks that the configuration of a git folder names."""
    for name, value in _settings_in(folder):
        if re.fullmatch(_REFERENCE, name):
            # Hooks are relative to each work tree, other files to the configuration.
            bases = {*_work_trees(folder), *trees} if name == "core.hookspath" else {folder}
            for base in bases:
                path = os.path.normpath(os.path.join(base, os.path.expanduser(_unquoted(value))))
                if os.path.lexists(path):
                    yield path


def _work_trees(folder: str) -> Iterator[str]:
    """Yield the folders that can be work trees of a git folder: the one above, and those that its files name."""
    yield os.path.dirname(folder)
    yield from _set_trees(folder)
    for tree in _folders(f"{folder}/worktrees"):
        if (link := _read(f"{tree}/gitdir")) is not None:
            yield os.path.dirname(os.path.join(tree, link.strip()))


def _set_trees(folder: str) -> list[str]:
    return [os.path.join(folder, _unquoted(path)) for name, path in _settings_in(folder) if name == "core.worktree"]


def _settings_in(folder: str) -> Iterator[tuple[str, str]]:
    """Yield the settings in the configuration of a git folder and their values, as far as they are understood."""
    for name in _SETTINGS:
        yield from filter(None, _entries(_read(f"{folder}/{name}") or ""))


def _unquoted(value: str) -> str:
    return value.strip('"')


def linked_git_folder(link: Path) -> Path | None:
    """Return the git folder that a ``.git`` file names, if something in that folder names the file's work tree.

    The file may have come with a project of somebody else, and name any folder.
    """
    folder = _target(link)
    if folder is None:
        return None
    repository, tree = folder, os.path.realpath(link.parent)
    common, back = _read(f"{folder}/commondir"), _read(f"{folder}/gitdir")
    if common is not None:
        repository = os.path.realpath(os.path.join(folder, common.strip()))
        # A folder elsewhere could name any repository.
        known = os.path.dirname(folder) == f"{repository}/worktrees" and (
            back is not None and os.path.realpath(os.path.join(folder, back.strip())) == os.path.realpath(link)
        )
    elif trees := _set_trees(folder):
        known = os.path.realpath(trees[-1]) == tree
    else:
        # After "--separate-git-dir", no setting names the work tree.
        known = _has_in_index(folder, tree)
    return Path(repository) if known and _holds_git(repository) else None


def _target(link: Path | str) -> str | None:
    """Return the real path of the folder that a ``.git`` file names."""
    text = _read(str(link))
    if text is None or not text.startswith("gitdir:"):
        return None
    return os.path.realpath(os.path.join(os.path.dirname(link), text.removeprefix("gitdir:").strip()))


def _holds_git(folder: str) -> bool:
    try:
        return is_git_folder(set(os.listdir(folder)))
    except OSError:
        return False


def _has_in_index(folder: str, tree: str) -> bool:
    """Return whether the index of a git folder has the inode of a file in the work tree ``tree``."""
    index = _read_regular(f"{folder}/index", MAX_INDEX_BYTES)
    if index is None:
        return False
    files = (f"{path}/{name}" for path, _, names in walk(tree) for name in names if name != ".git")
    for path in islice(files, MAX_INDEXED_FILES):
        with suppress(OSError):
            status = os.lstat(path)
            # The times and numbers in an entry, each cut to 32 bits: see gitformat-index(5).
            numbers = (*divmod(status.st_mtime_ns, 10**9), status.st_dev, status.st_ino)
            if b"".join((number % 2**32).to_bytes(4, "big") for number in numbers) in index:
                return True
    return False


def _only_samples(folder: str) -> bool:
    try:
        return all(name.endswith(".sample") for name in os.listdir(folder))
    except OSError:
        return False


def _read(path: str) -> str | None:
    data = read_small(path)
    # No path contains NUL.
    return None if data is None or b"\0" in data else data.decode("utf-8", "surrogateescape")


def read_small(path: str) -> bytes | None:
    """Return the contents of a regular file of at most :data:`MAX_FILE_BYTES`; ``None`` for anything else."""
    return _read_regular(path, MAX_FILE_BYTES)


def _read_regular(path: str, limit: int) -> bytes | None:
    if sys.platform == "win32":
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            data = file.read(limit + 1)
        return data if len(data) <= limit else None
    except OSError:
        return None


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
        trees: dict[str | None, list[str]] = {}
        for path in paths:
            if os.path.basename(path) == ".git":
                trees.setdefault(_target(path), []).append(os.path.dirname(path))
        paths += [path for folder in snapshot.git for path in settings_of(folder, trees.get(folder, ()))]
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
    """Write the former contents of a file that was moved away. No link in the path is followed.

    Raises:
        OSError: the file exists, or cannot be written.
    """
    create_file(Path(path), data)


def move_away(path: str, roots: Iterable[Path], target: Path) -> Path | None:
    """Move ``path``, which is below one of ``roots``, into the folder ``target``; return where it is now.

    No link in the path is followed: a running process could replace a folder by a link. If ``target`` is on another
    file system, the file is renamed in its folder instead. Returns ``None`` if the file is gone.
    """
    place = Path(path)
    if not CAN_WALK or not any(place.is_relative_to(root) for root in roots):
        return None
    try:
        with open_folder(place.parent) as folder:
            return _rename(folder, place.name, place, target)
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
