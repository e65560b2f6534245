"""Which files a search leaves out: those that git ignores, as git itself tells them."""

from __future__ import annotations

import heapq
import os
import re
import shutil
import subprocess
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from jumpseat.tools.files import readable

TIME_LIMIT_S: Final = 5.0

NAMED: Final = 3
"""Ignored paths that an answer names."""


async def ignored_paths(root: Path, environ: Mapping[str, str]) -> frozenset[str]:
    """The paths below ``root`` that git ignores, relative to it; a directory ends with a slash and is all in it.

    Empty outside of a repository, without git, and for a directory that is ignored itself: who names it wants it.
    """
    git = shutil.which("git", path=environ.get("PATH"))
    if git is None or not _in_repository(root):
        return frozenset()
    # A folder may come with settings that make git run programs; looking for files asks nobody for that.
    settings = ["-c", "core.fsmonitor=false", "-c", "safe.bareRepository=explicit"]
    own = {name: value for name, value in environ.items() if name not in _OF_ANOTHER_REPOSITORY}
    with anyio.move_on_after(TIME_LIMIT_S):
        try:
            done = await anyio.run_process(
                [git, *settings, "ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z"],
                stdin=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=root,
                env=own | {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1"},
                check=False,
            )
        except OSError:
            return frozenset()
        if done.returncode == 0:
            # There may be a hundred thousand of them.
            return await anyio.to_thread.run_sync(_paths, done.stdout)
    return frozenset()


def is_ignored(path: str, ignored: frozenset[str]) -> bool:
    """Whether the relative path of a file is one of ``ignored``, or below one."""
    return path in ignored or _is_below(path, ignored)


def left_out(ignored: Collection[str]) -> str:
    """A line for an answer that found nothing: absence and blindness must not look the same."""
    if not ignored:
        return ""
    names = readable(", ".join(heapq.nsmallest(NAMED, ignored)))
    more = f" and {len(ignored) - NAMED} more" if len(ignored) > NAMED else ""
    return f"\n[Not searched, as git ignores it: {names}{more}. Name such a path to search it.]"


def _paths(output: bytes) -> frozenset[str]:
    paths = frozenset(map(os.fsdecode, output.split(b"\0"))) - {""}
    if "./" in paths:
        return frozenset()
    # Git names a directory, and some of what is in it besides.
    return frozenset(path for path in paths if not _is_below(path, paths))


def _is_below(path: str, directories: frozenset[str]) -> bool:
    return bool(directories) and any(
        path[: slash.end()] in directories for slash in re.finditer("/", path) if slash.end() < len(path)
    )


def _in_repository(folder: Path) -> bool:
    return any(os.path.lexists(above / ".git") for above in (folder, *folder.parents))


_OF_ANOTHER_REPOSITORY: Final = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"})
