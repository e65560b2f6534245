"""Search files with ripgrep, the faster engine of ``grep``.

Reads its JSON output, so that the result does not depend on ripgrep's version or configuration. The options make
it search exactly the files that :mod:`jumpseat.tools.search.python_engine` searches.
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
"""Most ignored directories on ripgrep's command line; hits in all others are dropped later."""


async def search_with_ripgrep(
    program: str, environ: Mapping[str, str], search: Search, add: Callable[[FileHits], bool]
) -> Ending:
    """Pass the hits of each file to ``add``, in order of the paths, until it returns false.

    Raises:
        PatternRefusedError: the pattern is invalid.
        OSError: ripgrep cannot be started.
    """
    reader = HitReader(search, add)
    ending, stderr = await run_engine(
        _command(program, search), root=search.root, environ=environ, take=reader.take
    )
    if ending == "crash" and stderr and not reader.begun:
        # Never about files: --no-messages hides errors of unreadable ones.
        raise PatternRefusedError(stderr.splitlines()[-1].removeprefix("rg: ").removeprefix("error: ").rstrip("."))
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
