"""Shared by the file tools: binary files, unified diffs, messages for errors, and the files that git ignores."""

from __future__ import annotations

import heapq
import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

import anyio.to_thread

from jumpseat.system.git import GitError, run_git
from jumpseat.system.programs import OwnPrograms
from jumpseat.tools.tool import ToolOutcome, failure

SNIFF_BYTES: Final = 8192

MAX_COMPARISONS: Final = 4_000_000
"""Product of the numbers of lines above which a diff shows all lines as changed, instead of comparing them."""


def problem(path: str, error: OSError | ValueError) -> ToolOutcome:
    """Return the failed outcome for an error that concerns ``path``, as the model wrote it."""
    if isinstance(error, FileNotFoundError):
        return missing(path)
    if isinstance(error, ValueError):
        # The path contains a NUL character, or a lone surrogate, which no file name can contain.
        return failure(f"{path!r} is not a valid path. Please provide a valid path.")
    return failure(f"Path {path} cannot be accessed: {describe(error)}.")


def missing(path: str) -> ToolOutcome:
    outcome = failure(f"Path {path} does not exist. Please provide a valid path.")
    outcome.absent = path
    return outcome


def folder_there(path: str) -> ToolOutcome:
    """Return the failure of a call that would create a file where a folder is."""
    return failure(f"Path {path} is a folder. Choose another path, such as one in it.")


def describe(error: OSError) -> str:
    """Return the system's message without number and file name, such as ``Permission denied``."""
    return error.strerror or str(error) or type(error).__name__


def is_binary(head: bytes) -> bool:
    return b"\0" in head[:SNIFF_BYTES]


def readable(text: str) -> str:
    """Replace the surrogates that stand for undecodable bytes, which JSON cannot carry."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def unified_diff(
    name: str, before: str | None, after: str | None, context: int = 3, old_name: str | None = None
) -> str:
    """Return the unified diff of two texts; ``before`` is ``None`` for a new file, ``after`` for a deleted one.

    ``old_name`` is the name before, if the file was moved.

    Compares only the lines between the common head and tail: edits are small and files may be large.
    """
    if before is None or after is None:
        return _whole_diff(name, before, after)
    old, new = before.split("\n"), after.split("\n")
    # A final newline ends the last line and does not begin another one.
    for lines in (old, new):
        if lines and not lines[-1]:
            lines.pop()
        elif lines:
            lines[-1] += "\n\\ No newline at end of file"
    head = _count_common(old, new, 0)
    tail = _count_common(old[::-1], new[::-1], head)
    start = max(0, head - context)
    before_lines = old[start : len(old) - max(0, tail - context)]
    after_lines = new[start : len(new) - max(0, tail - context)]
    if len(before_lines) * len(after_lines) > MAX_COMPARISONS:
        sizes = f"@@ -{start + 1},{len(before_lines)} +{start + 1},{len(after_lines)} @@"
        hunks = [sizes, *(f"-{line}" for line in before_lines), *(f"+{line}" for line in after_lines)]
    else:
        # Imported with the first diff of a process.
        import difflib

        body = difflib.unified_diff(before_lines, after_lines, n=context, lineterm="")
        hunks = [_shift(line, start) if line.startswith("@@ ") else line for line in list(body)[2:]]
    return readable("\n".join([*_header(name, before, after, old_name or name), *hunks])) + "\n"


def _whole_diff(name: str, before: str | None, after: str | None) -> str:
    """Return the diff of a new or a deleted file, without a look at each of its lines."""
    text, mark = (after or "", "+") if before is None else (before, "-")
    hunks: list[str] = []
    if text:
        lines = text.removesuffix("\n")
        count = lines.count("\n") + 1
        size = f"1,{count}" if count > 1 else "1"
        hunks = [
            f"@@ -0,0 +{size} @@" if before is None else f"@@ -{size} +0,0 @@",
            mark + lines.replace("\n", f"\n{mark}"),
        ]
        if not text.endswith("\n"):
            hunks.append("\\ No newline at end of file")
    return readable("\n".join([*_header(name, before, after, name), *hunks])) + "\n"


def _header(name: str, before: str | None, after: str | None, old_name: str) -> list[str]:
    label, old_label = name.lstrip("/"), old_name.lstrip("/")
    return [
        "--- /dev/null" if before is None else f"--- a/{old_label}",
        "+++ /dev/null" if after is None else f"+++ b/{label}",
    ]


def _count_common(old: list[str], new: list[str], taken: int) -> int:
    """Count the equal lines at the start, without the last ``taken`` lines of the shorter list."""
    most = min(len(old), len(new)) - taken
    for index in range(most):
        if old[index] != new[index]:
            return index
    return most


_HUNK: Final = re.compile(r"([-+])(\d+)")


def _shift(header: str, lines: int) -> str:
    return _HUNK.sub(lambda match: f"{match[1]}{int(match[2]) + lines}", header)


TIMEOUT_S: Final = 5.0

MOST_NAMED: Final = 3
"""Number of ignored paths that a result names."""


async def ignored_paths(root: Path, environ: Mapping[str, str], programs: OwnPrograms) -> frozenset[str]:
    """Return the paths below ``root`` that git ignores, relative to it; a directory ends with a slash.

    Empty outside of a repository, if git is missing or fails, and if ``root`` is ignored itself: then a call has
    named it on purpose.
    """
    if not _in_repository(root):
        return frozenset()
    own = {name: value for name, value in environ.items() if name not in _OF_ANOTHER_REPOSITORY}
    options = ("--others", "--ignored", "--exclude-standard", "--directory", "-z")
    try:
        output = await run_git(root, "ls-files", *options, environ=own, timeout_s=TIMEOUT_S, programs=programs)
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
