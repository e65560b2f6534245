"""Searching files with ripgrep, the faster engine behind ``grep``.

Its JSON output is read rather than its text, so that what the model sees does not depend on its version or
options; the options make it search exactly the files that :mod:`jumpseat.tools.searcher` would.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jumpseat.tools.search import (
    FILE_LIMIT_BYTES,
    SKIPPED,
    Ending,
    FileHits,
    HitReader,
    PatternRefusedError,
    Search,
    run_engine,
)


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
    return [*command, f"--regexp={search.pattern}", "--", "./" if search.file is None else f"./{search.file}"]
