"""Read git folders as git does: their settings, and the folders that ``.git`` files and settings name.

Git itself reads settings, because a file that a command has written may mean something else to another parser.
Links between folders are read here, and refused unless they are written as git writes them.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from jumpseat.system.file_trees import walk

MAX_FILE_BYTES: Final = 256 * 1024

MAX_INDEX_BYTES: Final = 16 * 2**20
MAX_INDEXED_FILES: Final = 200
"""Limits of the search for a work tree in the index of a git folder."""

GIT_S: Final = 5.0
"""Time limit for reading the settings in one file."""
MAX_KNOWN: Final = 4096
"""Limit of the files whose settings are remembered."""

_SETTINGS: Final = ("config", "config.worktree")
_LINKS: Final = ("commondir", "gitdir")
_OF_OTHERS: Final = ("lazygit.yml", "sl/config")
"""Settings that other programs than git keep in a git folder."""

# Patterns of this module are compiled at their first use: most processes run no command.
HARMLESS: Final = (
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
_NAMES: Final = (b"include", b"hookspath", b"worktree")
"""Parts of the names of settings that name files and folders. Names are never escaped."""

HELPER: Final = r"\s*-|\s*\"?\w+::"
"""The beginning of an address that git passes to a program (``ext::``), or takes for an option."""

_CONTROL: Final = rb"[\0-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xa8\xa9]"
"""Characters that programs may take for the end of a line. Git writes none of them into settings."""

_EXECUTED: Final = rb"(?m)^[ \t]*(?:exec|x)[ \t].*$"
"""A step of an interrupted rebase that runs a command."""
_STRATEGY: Final = rb"(?s)\A(?!(?:octopus|ort|ours|recursive|resolve|subtree)\s*\Z).*"
_STRATEGY_OPTION: Final = (
    rb"(?mi)^[ \t]*strategy[ \t]*=[ \t]*+(?!(?:octopus|ort|ours|recursive|resolve|subtree)$).*$"
)
"""A strategy that git does not have: it runs ``git-merge-NAME``."""


class Examined(Struct):
    """The git folders that were examined: of repositories, submodules and, with ``trees``, linked work trees.

    ``steps`` are the commands of interrupted rebases, by the file that has them.
    """

    folders: set[str] = field(default_factory=set[str])
    trees: set[str] = field(default_factory=set[str])
    steps: dict[str, frozenset[bytes]] = field(default_factory=dict[str, frozenset[bytes]])


def is_git_folder(names: Container[str]) -> bool:
    """Return whether a folder with these entries is a git folder, whatever its name."""
    # Git runs hooks without any settings, and takes the settings of a folder that "commondir" names.
    return "HEAD" in names and ("objects" in names or "commondir" in names)


class GitSettings:
    """Reads settings with the git that ``find_git`` returns. Remembers the settings of files by their contents."""

    def __init__(self, find_git: Callable[[], str | None]) -> None:
        self._find_git = find_git
        self._known: dict[bytes, list[tuple[str, str]] | None] = {}

    def read(self, data: bytes) -> list[tuple[str, str]] | None:
        """Return the settings in the content of a file, without those of included files; ``None`` if invalid."""
        if data not in self._known:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known[data] = self._ask(data)
        return self._known[data]

    def _ask(self, data: bytes) -> list[tuple[str, str]] | None:
        git = self._find_git()
        if git is None:
            return None
        try:
            done = subprocess.run(
                [git, "config", "--file", "-", "--list", "-z", "--no-includes"],
                input=data,
                cwd="/",
                env={"PATH": os.defpath, "LC_ALL": "C", "GIT_CONFIG_NOSYSTEM": "1"},
                capture_output=True,
                timeout=GIT_S,
                check=False,
            )
        except (OSError, subprocess.SubprocessError):
            return None
        if done.returncode != 0:
            return None
        entries = done.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]
        return [(name, value) for name, _, value in (entry.partition("\n") for entry in entries)]

    def only_describe(self, data: bytes, folder: str) -> bool:
        """Return whether all settings in the content of a file only describe the repository of a git folder."""
        settings = None if re.search(_CONTROL, data) else self.read(data)
        return settings is not None and all(
            re.fullmatch(HARMLESS, name)
            and not (name.endswith(("url", ".remote")) and re.match(HELPER, value))
            and (name != "core.worktree" or _is_beside(folder, value))
            for name, value in settings
        )

    # --- the files of a git folder ------------------------------------------------------------------------------

    def files_of(self, folder: str, examined: Examined, trees: Iterable[str] = ()) -> Iterator[str]:
        """Yield the files and folders that configure git, of a git folder, its submodules and its work trees.

        The folders are added to ``examined``. ``trees`` are work trees that nothing in the folder names.
        """
        # Not recursive: a command can nest folders deeper than Python's stack.
        waiting = [folder]
        while waiting:
            below = waiting.pop()
            examined.folders.add(below)
            yield from _present(below)
            yield from self._named_paths(below, trees if below == folder else ())
            yield from _links(below)
            examined.steps |= _steps(below)
            for tree in _folders(f"{below}/worktrees"):
                examined.trees.add(tree)
                examined.steps |= _steps(tree)
                yield from _present(tree)
                yield from _links(tree)
                waiting += _submodules(tree)
            waiting += _submodules(below)

    def _named_paths(self, folder: str, trees: Iterable[str]) -> Iterator[str]:
        """Yield the files and folders with further settings and hooks that the settings of a git folder name."""
        for name, value in self._references(folder):
            if re.fullmatch(_REFERENCE, name):
                # Hooks are relative to each work tree, other files to the configuration.
                bases = {*self._work_trees(folder), *trees} if name == "core.hookspath" else {folder}
                for base in bases:
                    path = os.path.normpath(os.path.join(base, os.path.expanduser(value)))
                    if os.path.lexists(path):
                        yield path

    def _work_trees(self, folder: str) -> Iterator[str]:
        """Yield the folders that can be work trees of a git folder: the one above, and those that files name."""
        yield os.path.dirname(folder)
        yield from self._set_trees(folder)
        for tree in _folders(f"{folder}/worktrees"):
            if (link := _named_path(f"{tree}/gitdir")) is not None:
                yield os.path.dirname(os.path.join(tree, link))

    def _set_trees(self, folder: str) -> list[str]:
        return [os.path.join(folder, path) for name, path in self._references(folder) if name == "core.worktree"]

    def _references(self, folder: str) -> Iterator[tuple[str, str]]:
        """Yield the settings of a git folder, unless none of them can name a file or folder."""
        for name in _SETTINGS:
            data = read_small(f"{folder}/{name}")
            if data is not None and any(part in data.lower() for part in _NAMES):
                yield from self.read(data) or ()

    # --- judgements ---------------------------------------------------------------------------------------------

    def is_harmless(self, path: str, examined: Examined) -> bool:
        """Return whether a new file of a git folder, or a new ``.git`` file, cannot make git run a program.

        Git may take a folder that was not examined for a git folder, so that no file may name any other.
        """
        name = os.path.basename(path)
        if os.path.islink(path):
            return False
        if name == "hooks":
            return _only_samples(path)
        if os.path.basename(os.path.dirname(path)) == "hooks":
            return name.endswith(".sample")
        if name in _SETTINGS and os.path.basename(os.path.dirname(path)) != "sl":
            data = read_small(path)
            return data is not None and self.only_describe(data, os.path.dirname(path))
        named = _named_path(path)
        if named is None:
            return False
        target = os.path.normpath(os.path.join(os.path.dirname(path), named))
        if name == "gitdir":
            # The path of a work tree, from which git reads nothing but the link back.
            return os.path.basename(target) == ".git"
        # A link on the way could lead elsewhere later.
        allowed = examined.folders | examined.trees if name == ".git" else examined.folders
        return name in (".git", "commondir") and target in allowed and os.path.realpath(target) == target

    def linked_folder(self, link: Path) -> Path | None:
        """Return the git folder that a ``.git`` file names, if something in that folder names the file's work tree.

        The file may have come with someone else's project, and name any folder.
        """
        folder = target_of(link)
        if folder is None:
            return None
        repository, tree = folder, os.path.realpath(link.parent)
        common, back = _named_path(f"{folder}/commondir"), _named_path(f"{folder}/gitdir")
        if common is not None:
            repository = os.path.realpath(os.path.join(folder, common))
            # A folder elsewhere could name any repository.
            known = os.path.dirname(folder) == f"{repository}/worktrees" and (
                back is not None and os.path.realpath(os.path.join(folder, back)) == os.path.realpath(link)
            )
        elif trees := self._set_trees(folder):
            known = os.path.realpath(trees[-1]) == tree
        else:
            # After "--separate-git-dir", no setting names the work tree.
            known = _has_in_index(folder, tree)
        return Path(repository) if known and _holds_git(repository) else None


def _is_beside(folder: str, tree: str) -> bool:
    """Return whether a work tree is where that of a git folder belongs: next to the outermost folder ``.git``.

    Git overwrites files in its work tree, which must be neither the home of the user nor another project.
    """
    root, inside, _ = f"{folder}/".partition("/.git/")
    path = os.path.normpath(os.path.join(folder, tree))
    return bool(inside) and f"{path}/".startswith(f"{root}/") and os.path.realpath(path) == path


def target_of(link: Path | str) -> str | None:
    """Return the real path of the folder that a ``.git`` file names."""
    named = _named_path(str(link))
    return None if named is None else os.path.realpath(os.path.join(os.path.dirname(link), named))


def _named_path(link: str) -> str | None:
    """Return the path in a file ``.git``, ``commondir`` or ``gitdir``; ``None`` unless git would write it so."""
    data = read_small(link)
    if data is None:
        return None
    if os.path.basename(link) == ".git":
        if not data.startswith(b"gitdir: "):
            return None
        data = data.removeprefix(b"gitdir: ")
    data = data.removesuffix(b"\n")
    # Programs may read spaces at the ends in different ways.
    return (
        None
        if not data or b"\n" in data or data.strip() != data or re.search(_CONTROL, data)
        else os.fsdecode(data)
    )


def _present(folder: str) -> Iterator[str]:
    return (
        path for name in (*_SETTINGS, *_LINKS, *_OF_OTHERS, "hooks") if os.path.lexists(path := f"{folder}/{name}")
    )


def _steps(folder: str) -> dict[str, frozenset[bytes]]:
    """Return what an interrupted rebase or merge of a work tree will run, by the file that has it."""
    readers: dict[str, Callable[[bytes], list[bytes]]] = {
        "rebase-merge/git-rebase-todo": lambda data: re.findall(_EXECUTED, data),
        "rebase-merge/strategy": lambda data: re.findall(_STRATEGY, data),
        "sequencer/opts": lambda data: re.findall(_STRATEGY_OPTION, data),
    }
    found: dict[str, frozenset[bytes]] = {}
    for name, read in readers.items():
        path = f"{folder}/{name}"
        if os.path.lexists(path):
            data = read_regular(path, MAX_INDEX_BYTES)
            # A file that cannot be read is as bad as any command.
            found[path] = frozenset([b""] if data is None else read(data))
    return {path: commands for path, commands in found.items() if commands}


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


def _links(folder: str) -> Iterator[str]:
    """Yield the links in the place of git folders of submodules and work trees: those behind are not examined."""
    waiting = [f"{folder}/modules", f"{folder}/worktrees"]
    while waiting:
        below = waiting.pop()
        if os.path.islink(below):
            yield below
        elif below.startswith(f"{folder}/worktrees/") or os.path.lexists(f"{below}/HEAD"):
            continue
        else:
            waiting += _folders_and_links(below)


def _folders(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _folders_and_links(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries if entry.is_symlink() or entry.is_dir()]
    except OSError:
        return []


def _holds_git(folder: str) -> bool:
    try:
        return is_git_folder(os.listdir(folder))
    except OSError:
        return False


def _has_in_index(folder: str, tree: str) -> bool:
    """Return whether the index of a git folder has the inode of a file in the work tree ``tree``."""
    index = read_regular(f"{folder}/index", MAX_INDEX_BYTES)
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


def read_small(path: str) -> bytes | None:
    """Return the contents of a regular file of at most :data:`MAX_FILE_BYTES`; ``None`` for anything else."""
    return read_regular(path, MAX_FILE_BYTES)


def read_regular(path: str, limit: int) -> bytes | None:
    """Return the contents of a regular file of at most ``limit`` bytes; ``None`` for anything else."""
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
