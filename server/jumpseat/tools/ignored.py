"""The files that a search leaves out: those that git ignores, listed by git itself."""

from __future__ import annotations

import heapq
import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

import anyio.to_thread

from jumpseat.system.git import Confine, GitError, run_git
from jumpseat.tools.files import readable

TIMEOUT_S: Final = 5.0

MOST_NAMED: Final = 3
"""Number of ignored paths that a result names."""


async def ignored_paths(root: Path, environ: Mapping[str, str], confine: Confine | None = None) -> frozenset[str]:
    """Return the paths below ``root`` that git ignores, relative to it; a directory ends with a slash.

    Empty outside of a repository, if git is missing or fails, and if ``root`` is ignored itself: then a call has
    named it on purpose.
    """
    if not _in_repository(root):
        return frozenset()
    own = {name: value for name, value in environ.items() if name not in _OF_ANOTHER_REPOSITORY}
    options = ("--others", "--ignored", "--exclude-standard", "--directory", "-z")
    try:
        output = await run_git(root, "ls-files", *options, environ=own, timeout_s=TIMEOUT_S, confine=confine)
    except GitError:
        return frozenset()
    # In a thread, because there may be a hundred thousand paths.
    return await anyio.to_thread.run_sync(_paths, output)


def is_ignored(path: str, ignored: frozenset[str]) -> bool:
    """Return whether the relative path of a file is in ``ignored``, or below a directory that is."""
    return path in ignored or _is_below(path, ignored)


def ignored_note(ignored: Collection[str]) -> str:
    """Return the line that tells the model, if a search found nothing, which paths were not searched."""
    if not ignored:
        return ""
    names = readable(", ".join(heapq.nsmallest(MOST_NAMED, ignored)))
    more = f" and {len(ignored) - MOST_NAMED} more" if len(ignored) > MOST_NAMED else ""
    return f"\n[Not searched, as git ignores it: {names}{more}. Name such a path to search it.]"


def _paths(output: bytes) -> frozenset[str]:
    # Output that was cut may end in the middle of a path.
    complete = output.rpartition(b"\0")[0]
    paths = frozenset(map(os.fsdecode, complete.split(b"\0"))) - {""}
    if "./" in paths:
        return frozenset()
    # git lists a directory, and sometimes files in it as well.
    return frozenset(path for path in paths if not _is_below(path, paths))


def _is_below(path: str, directories: frozenset[str]) -> bool:
    return bool(directories) and any(
        path[: slash.end()] in directories for slash in re.finditer("/", path) if slash.end() < len(path)
    )


def _in_repository(folder: Path) -> bool:
    return any(os.path.lexists(above / ".git") for above in (folder, *folder.parents))


_OF_ANOTHER_REPOSITORY: Final = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"})
