"""Shared by the file tools: detection of binary files, unified diffs, messages for file errors."""

from __future__ import annotations

import re
from typing import Final

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
    return failure(f"Path {path} does not exist. Please provide a valid path.")


def describe(error: OSError) -> str:
    """Return the system's message without number and file name, such as ``Permission denied``."""
    return error.strerror or str(error) or type(error).__name__


def is_binary(head: bytes) -> bool:
    return b"\0" in head[:SNIFF_BYTES]


def readable(text: str) -> str:
    """Replace the surrogates that stand for undecodable bytes, which JSON cannot carry."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def unified_diff(name: str, before: str | None, after: str | None, context: int = 3) -> str:
    """Return the unified diff of two texts; ``before`` is ``None`` for a new file, ``after`` for a deleted one.

    Compares only the lines between the common head and tail: edits are small and files may be large.
    """
    old = [] if before is None else before.split("\n")
    new = [] if after is None else after.split("\n")
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
    label = name.lstrip("/")
    header = [
        "--- /dev/null" if before is None else f"--- a/{label}",
        "+++ /dev/null" if after is None else f"+++ b/{label}",
    ]
    return readable("\n".join([*header, *hunks])) + "\n"


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
