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
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, TypeAlias

from msgspec import Struct, field

from jumpseat.sandbox.folders import Folder, LinkedRepositories, are_same, read_folder
from jumpseat.sandbox.git_folders import Examined, GitSettings, read_small, target_of
from jumpseat.sandbox.indexes import Indexes
from jumpseat.sandbox.obeyed_files import depth_of_holder, is_plain
from jumpseat.sandbox.places import START_FILES
from jumpseat.system.file_trees import walk
from jumpseat.system.nofollow import CAN_WALK, create_file, open_folder
from jumpseat.system.private_files import create_private_folder

MAX_FOLDERS: Final = 50_000
"""Limit of the folders that are examined. In a larger project, commands do not count as confined."""

MAX_INSTALLED: Final = 100_000
"""The same for the folders of installed packages."""

FEW_INSTALLED: Final = 300
"""Folders of installed packages that are searched after each command: that takes about a millisecond."""

MAX_CONTENTS: Final = 1000
"""Limit of the files that are examined in one folder that configures a program and cannot be made read-only."""

Search: TypeAlias = Literal["all", "known", "named", "new", "none"]
"""When installed packages are searched for repositories: always; always, but not those that were not there at the
last search; if there are few or new ones, or a git index may name a repository; if there are new ones; or never."""

Identity: TypeAlias = tuple[int, ...]
"""Device and inode of a file and of the folder in which it has an effect, and the time of the file's last change if
it is a link or cannot be made read-only."""


class Snapshot(Struct):
    """The configuration files at one time, with their identities by path.

    ``git`` are the git folders, ``of_git`` the files that configure git. ``anchors`` are the folders in which files
    have an effect: ``a`` for ``a/.vscode`` and ``a/.github/mcp.json``. ``folders`` are all that were examined, not
    ``complete`` if there are too many. ``contents`` are those of small files that cannot be made read-only.
    ``is_searched``: the repositories among installed packages are those of now. ``has_new``: some of the packages
    were not there at the last search.
    """

    files: dict[str, Identity] = field(default_factory=dict[str, Identity])
    git: set[str] = field(default_factory=set[str])
    of_git: set[str] = field(default_factory=set[str])
    anchors: dict[str, str] = field(default_factory=dict[str, str])
    folders: Mapping[str, object] = field(default_factory=dict[str, object])
    examined: Examined = field(default_factory=Examined)
    complete: bool = True
    contents: dict[str, bytes] = field(default_factory=dict[str, bytes])
    is_searched: bool = True
    has_new: bool = False


class ConfigurationFiles:
    """The configuration files below the folders of one session. Remembers folders that have not changed.

    ``home`` is the home folder of the user, ``own`` that of the server, which commands cannot reach. Without
    ``searches``, installed packages are not searched for repositories.
    """

    def __init__(self, home: Path, own: Path, git: GitSettings, *, searches: bool = True) -> None:
        self._home = str(home)
        self._own = str(own)
        self._git = git
        self._searches = searches
        self._known: dict[str, Folder] = {}
        self._installed: dict[str, Folder] = {}
        self._repositories: list[Folder] = []
        self._searched: tuple[list[str], set[str]] | None = None
        self._behind = LinkedRepositories(git)
        self._indexes = Indexes()
        self._linked: set[str] | None = None

    def snapshot(
        self,
        roots: Iterable[Path],
        git_folders: Iterable[Path] = (),
        elsewhere: Iterable[Path] = (),
        *,
        contents: bool,
        search: Search = "all",
    ) -> Snapshot:
        """Examine the folders below ``roots``, and git folders elsewhere. Blocks on the file system.

        ``elsewhere`` are further folders that commands may write to, where only links of ``roots`` have an effect.
        ``contents`` are kept where the mechanism cannot make files read-only. If installed packages are not
        searched, the repositories among them are those of the last time.
        """
        snapshot = Snapshot()
        seen: dict[str, Folder] = {}
        names = list(map(str, roots))
        paths = list(self._paths(names, seen, snapshot.git))
        self._known = seen
        installed = [path for folder in seen.values() for path in folder.installed if path not in seen]
        if self._searches:
            snapshot.has_new = not self._installed.keys() >= set(installed)
            snapshot.is_searched = self._must_search(search, snapshot, git_folders)
            if snapshot.is_searched:
                self._search([path for path in installed if search != "known" or path in self._installed], {*seen})
        for folder in self._repositories:
            snapshot.git.update(folder.git)
            paths += folder.found
        snapshot.folders = seen
        snapshot.complete = len(seen) < MAX_FOLDERS and len(self._installed) < MAX_INSTALLED
        trees: dict[str | None, list[str]] = {}
        for path in paths:
            if os.path.basename(path) == ".git":
                snapshot.of_git.add(path)
                trees.setdefault(target_of(path), []).append(os.path.dirname(path))
        if self._linked is None:
            # Only what was there before the first command: a later file may name what a command has made.
            self._linked = {target for target in trees if target is not None and _is_in(target, names)}
        snapshot.git.update(map(str, git_folders), filter(os.path.isdir, self._linked))
        paths += self._links(seen, snapshot, elsewhere)
        anchored = [(path, _anchor(path)) for path in paths]
        for folder in snapshot.git:
            files = list(self._git.files_of(folder, snapshot.examined, trees.get(folder, ())))
            anchored += [(path, os.path.dirname(folder)) for path in files]
            snapshot.of_git.update(files)
        self._identify(snapshot, anchored, contents=contents)
        return snapshot

    def _links(self, seen: Mapping[str, Folder], snapshot: Snapshot, elsewhere: Iterable[Path]) -> list[str]:
        """Return the links to places where git finds a repository that was not examined, and is not harmless."""
        links = [path for folder in seen.values() for path in folder.links]
        corners = [*snapshot.git, *map(os.path.realpath, elsewhere)] if links else []
        found = list(self._behind.harmful(links, corners, snapshot.git)) if links else []
        snapshot.complete = snapshot.complete and (not links or self._behind.complete)
        return found

    def _must_search(self, search: Search, snapshot: Snapshot, git_folders: Iterable[Path]) -> bool:
        """Return whether installed packages have to be searched."""
        if search in ("all", "known") or (snapshot.has_new and search != "none"):
            return True
        if search != "named":
            return False
        folders = {*snapshot.git, *map(str, git_folders), *(self._linked or ())}
        return len(self._installed) <= FEW_INSTALLED or self._indexes.may_name_repositories(folders)

    def _identify(self, snapshot: Snapshot, anchored: Iterable[tuple[str, str]], *, contents: bool) -> None:
        """Add the files, and the folders in which they have an effect, to ``snapshot``."""
        anchors: dict[str, Identity] = {}
        for path, anchor in anchored:
            if path == self._own or path.startswith(f"{self._own}/"):
                continue
            for below in _contents(path) if contents else (path,):
                with suppress(OSError):
                    if anchor not in anchors:
                        folder = os.stat(anchor)
                        anchors[anchor] = folder.st_dev, folder.st_ino
                    status = os.lstat(below)
                    identity = (status.st_dev, status.st_ino, *anchors[anchor])
                    if stat.S_ISLNK(status.st_mode) or (contents and stat.S_ISREG(status.st_mode)):
                        # Nothing keeps a command from replacing this file by one that gets the same inode.
                        identity += (status.st_ctime_ns,)
                    snapshot.files[below], snapshot.anchors[below] = identity, anchor
                    if path in snapshot.of_git:
                        snapshot.of_git.add(below)
                    if contents and stat.S_ISREG(status.st_mode) and (data := read_small(below)) is not None:
                        snapshot.contents[below] = data

    def _paths(self, roots: Iterable[str], seen: dict[str, Folder], git: set[str]) -> Iterator[str]:
        waiting, new = list(roots), list[str]()
        if self._home in waiting:
            yield from (path for name in START_FILES if os.path.lexists(path := f"{self._home}/{name}"))
        # Folders that were there before come first: a command may make any number of others.
        while (waiting or new) and len(seen) < MAX_FOLDERS:
            path = (waiting or new).pop()
            folder = None if path in seen or path == self._own else read_folder(path, self._known)
            if folder is not None:
                seen[path] = folder
                for below in folder.folders:
                    (waiting if below in self._known else new).append(below)
                git.update(folder.git)
                yield from folder.found

    def _search(self, folders: list[str], examined: set[str]) -> None:
        """Find the repositories in ``folders`` of installed packages, except in those that are ``examined``."""
        # Hardly any command changes something there, and this takes half of the time.
        if self._searched == (folders, examined) and are_same(self._installed):
            return
        found: dict[str, Folder] = {}
        waiting, new = list(folders), list[str]()
        while (waiting or new) and len(found) < MAX_INSTALLED:
            path = (waiting or new).pop()
            folder = (
                None if path in examined or path in found else read_folder(path, self._installed, installed=True)
            )
            if folder is not None:
                found[path] = folder
                for below in folder.folders:
                    (waiting if below in self._installed else new).append(below)
        self._installed, self._searched = found, (folders, examined)
        self._repositories = [folder for folder in found.values() if folder.found or folder.git]


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


def new_files(before: Snapshot, after: Snapshot, git: GitSettings) -> list[str]:
    """Return the files that configure programs and were not there before, in the order of their paths.

    A file that was moved along with its folder to a new place is the same file. A new repository counts only if its
    settings can make git run a program, and a file that chooses a version only if it names a program.
    """
    known = set(before.files.values())

    def is_known(path: str, identity: Identity) -> bool:
        return before.files.get(path) == identity or (
            identity in known and after.anchors[path] not in before.folders
        )

    steps = after.examined.steps
    return sorted(
        [path for path, commands in steps.items() if commands - before.examined.steps.get(path, frozenset())]
        + [
            path
            for path, identity in after.files.items()
            if not is_known(path, identity) and not _may_stay(path, after, git)
        ]
    )


def _may_stay(path: str, after: Snapshot, git: GitSettings) -> bool:
    """Return whether a new file makes no program run something, and is protected from later commands."""
    with suppress(OSError):
        status = os.lstat(path)
        # A later command could change the file under its other name, which nothing protects.
        if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
            return False
    return git.is_harmless(path, after.examined) if path in after.of_git else is_plain(path, read_small(path))


def _anchor(path: str) -> str:
    """Return the folder in which a file that configures a program has an effect."""
    above = os.path.dirname(path)
    for _ in range(depth_of_holder(above.casefold().split("/")[-2:])):
        above = os.path.dirname(above)
    return above


def _is_in(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


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
    path = folder / name
    # Not numbers: with each of thousands of files of the same name, more of them would be tried.
    return folder / f"{name}.{uuid.uuid4().hex[:12]}" if os.path.lexists(path) else path
