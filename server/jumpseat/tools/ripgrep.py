"""Searching files with ripgrep, the faster engine behind ``grep``.

Its JSON output is read rather than its text, so that what the model sees does not depend on its version or
options; the options make it search exactly the files that :mod:`jumpseat.tools.search` would.
"""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Callable
from typing import Any

import anyio
import orjson
from anyio.abc import ByteReceiveStream

from jumpseat.tools.glob import SKIPPED
from jumpseat.tools.search import FileHits, Line, Search


class PatternRefusedError(Exception):
    """ripgrep does not understand the pattern; the text says why."""


async def run_ripgrep(
    program: str, environ: dict[str, str], search: Search, add: Callable[[FileHits], bool]
) -> None:
    """Hand the hits of each file to ``add``, in order of the paths, until it says that it has enough.

    Raises:
        PatternRefusedError: before anything was handed over.
        OSError: it cannot be run.
    """
    process = await anyio.open_process(
        _command(program, search),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=search.root,
        env=environ,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        if not await _read_hits(process.stdout, search, add):
            return
        # Never much: unreadable files are not reported.
        complaint = b"".join([chunk async for chunk in process.stderr])
        if await process.wait() == 2 and complaint:
            lines = complaint.decode("utf-8", "replace").strip().splitlines()
            raise PatternRefusedError(lines[-1].removeprefix("rg: ").removeprefix("error: ").rstrip("."))
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.kill()
            await process.aclose()


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
    command += [f"--glob=!{name}" for name in sorted(SKIPPED)]
    return [*command, f"--regexp={search.pattern}", "--", "./" if search.file is None else f"./{search.file}"]


async def _read_hits(output: ByteReceiveStream, search: Search, add: Callable[[FileHits], bool]) -> bool:
    """Read the records; false when ``add`` had enough."""
    hits = FileHits("")
    rest = bytearray()
    async for chunk in output:
        rest += chunk
        if b"\n" not in chunk:
            continue
        *records, last = bytes(rest).split(b"\n")
        rest = bytearray(last)
        for record in map(orjson.loads, records):
            data = record["data"]
            match record["type"]:
                case "begin":
                    hits = FileHits(_text(data["path"]).removeprefix("./") if search.file is None else "")
                case "match" | "context":
                    hits.lines += _lines(data, matches=record["type"] == "match")
                case "end" if data["binary_offset"] is None and hits.lines and not add(hits):
                    return False
                case _:
                    pass
    return True


def _lines(data: dict[str, Any], *, matches: bool) -> list[Line]:
    texts = _text(data["lines"]).removesuffix("\n").split("\n")
    return [
        Line(number, text.removesuffix("\r"), matches) for number, text in enumerate(texts, data["line_number"])
    ]


def _text(value: dict[str, str]) -> str:
    """Text comes as it is, anything that is not UTF-8 in base64."""
    if "text" in value:
        return value["text"]
    return base64.b64decode(value["bytes"]).decode("utf-8", "replace")
