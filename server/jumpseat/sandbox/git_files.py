"""The files of a git folder that decide which programs git runs, and the harmless ones among them."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

MAX_FILE_BYTES: Final = 256 * 1024

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


def settings_of(folder: str) -> Iterator[str]:
    """Yield the files and folders that configure git, of a git folder, its submodules and its work trees."""
    # Not recursive: a command can nest folders deeper than Python's stack.
    waiting = [folder]
    while waiting:
        folder = waiting.pop()
        for name in (*_SETTINGS, "commondir", "hooks"):
            if os.path.lexists(path := f"{folder}/{name}"):
                yield path
        yield from _named_paths(folder)
        for tree in _folders(f"{folder}/worktrees"):
            for name in (_SETTINGS[1], *_LINKS):
                if os.path.lexists(path := f"{tree}/{name}"):
                    yield path
        waiting += _submodules(folder)


def _submodules(folder: str) -> Iterator[str]:
    """Yield the git folders of the submodules in a git folder."""
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


def _named_paths(folder: str) -> Iterator[str]:
    """Yield the files and folders with further settings and hooks that the configuration of a git folder names."""
    for name in _SETTINGS:
        for entry in _entries(_read(f"{folder}/{name}") or ""):
            if entry is None or not re.fullmatch(_REFERENCE, entry[0]):
                continue
            # Hooks are relative to the work tree, other files to the configuration.
            base = os.path.dirname(folder) if entry[0] == "core.hookspath" else folder
            path = os.path.normpath(os.path.join(base, os.path.expanduser(entry[1].strip('"'))))
            if os.path.lexists(path):
                yield path


def work_tree_folder(link: Path) -> Path | None:
    """Return the git folder that the ``.git`` file of a linked work tree names, if that folder names it too."""
    text = _read(str(link))
    if text is None or not text.startswith("gitdir:"):
        return None
    folder = link.parent / text.removeprefix("gitdir:").strip()
    back, common = _read(f"{folder}/gitdir"), _read(f"{folder}/commondir")
    if back is None or common is None or os.path.realpath(folder / back.strip()) != os.path.realpath(link):
        return None
    repository = Path(os.path.realpath(folder / common.strip()))
    return repository if is_git_folder(set(os.listdir(repository)) if repository.is_dir() else set()) else None


def _only_samples(folder: str) -> bool:
    try:
        return all(name.endswith(".sample") for name in os.listdir(folder))
    except OSError:
        return False


def _read(path: str) -> str | None:
    data = read_small(path)
    return None if data is None else data.decode("utf-8", "surrogateescape")


def read_small(path: str) -> bytes | None:
    """Return the contents of a regular file of at most :data:`MAX_FILE_BYTES`; ``None`` for anything else."""
    if sys.platform == "win32":
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            data = file.read(MAX_FILE_BYTES + 1)
        return data if len(data) <= MAX_FILE_BYTES else None
    except OSError:
        return None
