"""Searching files with ripgrep, the faster engine behind ``grep``.

Its JSON output is read rather than its text, so that what the model sees does not depend on its version or
options; the options make it search exactly the files that :mod:`jumpseat.tools.search.python_engine` would.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Mapping
from typing import Final

from jumpseat.tools.search.engine import (
    FILE_LIMIT_BYTES,
    SKIPPED,
    Ending,
    FileHits,
    HitReader,
    PatternRefusedError,
    Search,
    run_engine,
)

PRUNED_LIMIT: Final = 200
"""Ignored directories that ripgrep is told of; the hits of all others are dropped later."""


async def search_with_ripgrep(
    program: str, environ: Mapping[str, str], search: Search, add: Callable[[FileHits], bool]
) -> Ending:
    """Hand the hits of each file to ``add``, in order of the paths, until it says that it has enough.

    Raises:
        PatternRefusedError: before anything was handed over.
        OSError: it cannot be run.
    """
    reader = HitReader(search, add)
    ending, complaint = await run_engine(
        _command(program, search), root=search.root, environ=environ, take=reader.take
    )
    if ending == "crash" and complaint and not reader.begun:
        # Never about files: unreadable ones are not reported.
        raise PatternRefusedError(
            complaint.splitlines()[-1].removeprefix("rg: ").removeprefix("error: ").rstrip(".")
        )
    return reader.end(ending)


def _command(program: str, search: Search) -> list[str]:
    command = [
        program,
        "--json",
        "--no-config",
        "--no-messages",
        "--no-ignore",
        "--hidden",
        "--crlf",
        "--sort=path",
        f"--max-filesize={FILE_LIMIT_BYTES}",
    ]
    if search.ignore_case:
        command.append("--ignore-case")
    if search.multiline:
        command += ["--multiline", "--multiline-dotall"]
    if search.before:
        command.append(f"--before-context={search.before}")
    if search.after:
        command.append(f"--after-context={search.after}")
    if search.first_only:
        command.append("--max-count=1")
    if search.glob:
        command.append(f"--glob={search.glob}")
    # The last glob wins.
    command += [f"--glob=!{name}" for name in SKIPPED]
    directories = (path for path in search.ignored if path.endswith("/") and not re.search(r"[^\w./@+ -]", path))
    command += [f"--glob=!/{path}" for path in heapq.nsmallest(PRUNED_LIMIT, directories)]
    return [*command, f"--regexp={search.pattern}", "--", "./" if search.file is None else f"./{search.file}"]
