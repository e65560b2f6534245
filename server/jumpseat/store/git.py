"""Where a directory stands in git, read from git's own files: no child process for a session to start."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

from jumpseat_protocol.events import WorkingDirectoryContext

_REMOTE = re.compile(r"[/:]([^/:]+)/([^/]+?)(?:\.git)?/?$")


def git_root(folder: Path) -> Path | None:
    """The root of the repository, or worktree, that ``folder`` lies in; ``None`` outside of any."""
    for root in (folder, *folder.parents):
        try:
            if (root / ".git").is_file() or (root / ".git" / "HEAD").is_file():
                return root
        except OSError:
            continue
    return None


def working_directory_context(cwd: Path, *, host_git: bool = True) -> WorkingDirectoryContext:
    """``cwd`` with its repository, branch and ``owner/name``, as far as they can be told."""
    context = WorkingDirectoryContext(cwd=str(cwd))
    if not host_git:
        return context
    for folder in (cwd, *cwd.parents):
        dot_git = folder / ".git"
        try:
            if dot_git.is_file():  # a worktree or a submodule: the file names the real folder
                dot_git = (folder / dot_git.read_text().removeprefix("gitdir:").strip()).resolve()
            if not (dot_git / "HEAD").is_file():
                continue
            context.git_root = str(folder)
            head = (dot_git / "HEAD").read_text().strip()
            if head.startswith("ref: refs/heads/"):
                context.branch = head.removeprefix("ref: refs/heads/")
            context.repository = _repository(dot_git)
        except (OSError, UnicodeDecodeError):
            pass
        return context
    return context


def _repository(dot_git: Path) -> str | None:
    config = dot_git / "config"
    common = dot_git / "commondir"
    if common.is_file():
        config = dot_git / common.read_text().strip() / "config"
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        # Git does not mind how lines are indented, the parser does.
        parser.read_string("\n".join(line.strip() for line in config.read_text().splitlines()))
        url = parser.get('remote "origin"', "url", fallback=None)
    except (OSError, configparser.Error):
        return None
    found = _REMOTE.search(url or "")
    return f"{found.group(1)}/{found.group(2)}" if found else None
