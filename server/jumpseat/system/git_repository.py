"""The git repository of a folder, read from git's files: starting a session runs no child process."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from jumpseat.system.regular_files import is_there, read_regular, upward
from jumpseat_protocol.events import WorkingDirectoryContext

LARGEST_BYTES: Final = 256 * 1024
"""Size to which a file of git is cut."""

_REMOTE: Final = re.compile(r"[/:]([^/:]+)/([^/]+?)(?:\.git)?/?$")


def git_root(folder: Path) -> Path | None:
    """Return the root of the repository or worktree that holds ``folder``; ``None`` if there is none."""
    for root in (folder, *folder.parents):
        try:
            if (root / ".git").is_file() or (root / ".git" / "HEAD").is_file():
                return root
        except OSError:
            continue
    return None


def working_directory_context(cwd: Path, *, host_git: bool = True) -> WorkingDirectoryContext:
    """Return ``cwd`` with its repository root, branch and ``owner/name``, as far as they are known.

    Without ``host_git``, only ``cwd`` is set.
    """
    context = WorkingDirectoryContext(cwd=str(cwd))
    if not host_git:
        return context
    # Most working directories have none, and each session looks for one.
    for folder in (Path(above) for above in upward(cwd) if is_there(f"{above}{os.sep}.git")):
        dot_git = folder / ".git"
        try:
            if dot_git.is_file():  # a worktree or a submodule: the file names the real folder
                dot_git = (folder / _read(dot_git).removeprefix("gitdir:").strip()).resolve()
            if not (dot_git / "HEAD").is_file():
                continue
            context.git_root = str(folder)
            head = _read(dot_git / "HEAD").strip()
            if head.startswith("ref: refs/heads/"):
                context.branch = head.removeprefix("ref: refs/heads/")
            context.repository = _repository(dot_git)
        except (OSError, ValueError):
            pass
        return context
    return context


def _read(path: Path) -> str:
    return read_regular(path, LARGEST_BYTES).decode()


def _repository(dot_git: Path) -> str | None:
    config = dot_git / "config"
    common = dot_git / "commondir"
    if common.is_file():
        config = dot_git / _read(common).strip() / "config"
    # Imported with the first repository of a process.
    import configparser

    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        # Git ignores indentation, the parser does not.
        parser.read_string("\n".join(line.strip() for line in _read(config).splitlines()))
        url = parser.get('remote "origin"', "url", fallback=None)
    except (OSError, ValueError, configparser.Error):
        return None
    found = _REMOTE.search(url or "")
    return f"{found.group(1)}/{found.group(2)}" if found else None
