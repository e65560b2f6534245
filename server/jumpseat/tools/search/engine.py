"""Run a search in its own process: requests, hits, and the limits that hold for every engine.

An engine is a program that writes records in the format of ``rg --json``. It is killed when the call is cancelled,
has enough hits, or takes too long; hits found until then are kept. There are two engines: ripgrep
(:mod:`jumpseat.tools.search.ripgrep`) and one in Python (:mod:`jumpseat.tools.search.python_engine`).
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

import anyio
import orjson
from anyio.abc import ByteReceiveStream, Process
from msgspec import Struct, field

from jumpseat.tools.files import describe, is_ignored
from jumpseat.tools.tool import ToolOutcome, failure

TIME_LIMIT_S: Final = 30.0

ORPHAN_LIMIT_S: Final = 60.0
"""Time after which the Python engine exits by itself, in case this process has died unnoticed."""

KILL_WAIT_S: Final = 1.0
"""Longest wait for a process that SIGKILL does not end at once (uninterruptible I/O)."""

RECORD_LIMIT_BYTES: Final = 4 * 1024 * 1024
"""Longer records are not parsed: one line of a minified file may have hundreds of megabytes."""

STDERR_LIMIT_BYTES: Final = 64 * 1024

Record: TypeAlias = dict[str, Any]
"""An object with ``type`` and ``data``; ``data`` is ``None`` if the record was too long."""

FILE_LIMIT_BYTES: Final = 64 * 1024 * 1024
"""Larger files are skipped."""

SKIPPED: Final = (".git",)
"""Names that no search enters."""

HITS_LIMIT: Final = (100_000, 2 * 1024 * 1024)
"""Most lines and characters of hits in one file; a search that exceeds them stops."""

LINE_LIMIT: Final = 2000
"""Characters kept of one line: a minified file may be a single line."""

Ending: TypeAlias = Literal["complete", "enough", "time", "memory", "crash"]


class Search(Struct, frozen=True):
    """A search of file contents, for any engine.

    ``file`` is a single name in ``root``, or ``None`` for all files below it except for ``ignored`` paths. These
    are relative, and a directory ends with a slash. Without ``content``, lines are only counted. ``texts`` are the
    files by their relative paths, if they are not on the disk: only the Python engine searches them.
    """

    pattern: str
    root: Path
    file: str | None
    glob: str | None
    ignore_case: bool
    multiline: bool
    before: int
    after: int
    first_only: bool
    content: bool
    ignored: frozenset[str] = frozenset()
    texts: Mapping[str, str] | None = None


class Line(Struct):
    """A line, of which ``more`` characters were cut off. ``number`` is ``None`` if it was too long to parse."""

    number: int | None
    text: str
    matches: bool
    more: int = 0


class FileHits(Struct):
    """The matching lines of a file with their context, in order.

    ``name`` is relative to the searched directory, empty if a single file was searched. ``count`` is the number of
    matching lines; if ``too_many``, there are more.
    """

    name: str
    lines: list[Line] = field(default_factory=list[Line])
    count: int = 0
    too_many: bool = False


class RefusedError(Exception):
    """An engine rejected the request, for the reason in the message. Raised before any hit is delivered."""


class PatternRefusedError(RefusedError):
    """The pattern is not a valid regular expression."""


class GlobRefusedError(RefusedError):
    """The glob is invalid."""


async def search_in_python(environ: Mapping[str, str], search: Search, add: Callable[[FileHits], bool]) -> Ending:
    """Pass the hits of each file to ``add``, in order of the paths, until it returns false.

    Raises:
        RefusedError: the pattern or glob is invalid.
        OSError: the process cannot be started.
    """
    request = {
        "tool": "grep",
        "pattern": search.pattern,
        "file": search.file and _plain(search.file),
        "glob": search.glob,
        "ignore_case": search.ignore_case,
        "multiline": search.multiline,
        "before": search.before,
        "after": search.after,
        "first_only": search.first_only,
        "content": search.content,
        "file_limit": FILE_LIMIT_BYTES,
        "ignored": [_plain(path) for path in search.ignored],
        "texts": search.texts and dict(search.texts),
    }
    reader = HitReader(search, add)
    return reader.end(await _run_python_engine(environ, search.root, request, reader.take))


async def glob_in_python(
    environ: Mapping[str, str],
    root: Path,
    pattern: str,
    *,
    depth: int | None,
    limit: int,
    ignored: Iterable[str] = (),
    names: list[str] | None = None,
    add: Callable[[str], None],
) -> tuple[Ending, int]:
    """Pass up to ``limit`` matching paths to ``add``, relative and in order; return the number of others, too.

    ``names`` are the files, if they are not on the disk.

    Raises:
        RefusedError: the glob is invalid.
        OSError: the process cannot be started.
    """
    more = 0

    def take(record: Record) -> bool:
        nonlocal more
        match record:
            case {"type": "file", "data": {"path": path}}:
                add(_path(path))
            case {"type": "summary", "data": {"more": int(count)}}:
                more = count
            case _:
                pass
        return True

    request = {
        "tool": "glob",
        "pattern": pattern,
        "depth": depth,
        "limit": limit,
        "ignored": [_plain(path) for path in ignored],
        "names": names,
    }
    return await _run_python_engine(environ, root, request, take), more


async def run_engine(
    command: list[str],
    *,
    root: str | Path,
    environ: Mapping[str, str],
    take: Callable[[Record], bool],
    request: bytes | None = None,
) -> tuple[Ending, str]:
    """Run ``command`` in ``root`` and pass its records to ``take`` until that returns false.

    Returns how the search ended and the standard error. The process group never outlives the call.

    Raises:
        OSError: the process cannot be started.
    """
    process = await _start(command, root, environ, request)
    assert process.stdout is not None
    assert process.stderr is not None
    complete = False
    try:
        with anyio.move_on_after(TIME_LIMIT_S):
            if process.stdin is not None and request is not None:
                # A process that does not read its input reports the reason on its standard error.
                with contextlib.suppress(anyio.BrokenResourceError):
                    await process.stdin.send(request)
                await process.stdin.aclose()
            async with contextlib.aclosing(_records(process.stdout)) as records:
                async for record in records:
                    complete = complete or record["type"] == "summary"
                    if not take(record):
                        return "enough", ""
            stderr = (await _read_all(process.stderr)).decode("utf-8", "replace").strip()
            await process.wait()
            return "complete" if complete else "crash", stderr
        return "time", ""
    finally:
        await _end(process)


def interrupted(ending: Ending) -> str | None:
    """Return the note for the model about an incomplete search, ``None`` for a complete one."""
    match ending:
        case "complete" | "enough":
            return None
        case "time":
            return f"the search was stopped after {TIME_LIMIT_S:g} seconds. {_ADVICE}"
        case "memory":
            return f"the search needed too much memory. {_ADVICE}"
        case "crash":
            return f"the search ended unexpectedly. {_ADVICE}"


def cannot_start(error: OSError) -> ToolOutcome:
    return failure(f"The search could not be started: {describe(error)} ({error.filename}).")


_ADVICE: Final = "Use a simpler pattern (without nested repetition), or a narrower path or glob."


class HitReader:
    """Collects records into the hits of one file at a time, within :data:`HITS_LIMIT`."""

    def __init__(self, search: Search, add: Callable[[FileHits], bool]) -> None:
        self._search = search
        self._add = add
        self._hits = FileHits("")
        self._size = 0
        self._is_searched = True
        self.begun = False

    def take(self, record: Record) -> bool:
        kind, data = record["type"], record["data"]
        self.begun = True
        if kind == "begin" and data is not None:
            name = _path(data["path"]).removeprefix("./")
            self._hits = FileHits("" if self._search.file is not None else name)
            self._size = 0
            self._is_searched = self._search.file is not None or not is_ignored(name, self._search.ignored)
        elif kind in ("match", "context") and self._is_searched:
            self._take_lines(data, matches=kind == "match")
            if len(self._hits.lines) > HITS_LIMIT[0] or self._size > HITS_LIMIT[1]:
                self._hits.too_many = True
                return self._add(self._hits) and False
        elif kind == "end":
            hits, self._hits = self._hits, FileHits("")
            if self._is_searched and data and data["binary_offset"] is None and hits.count:
                return self._add(hits)
        return True

    def end(self, ending: Ending) -> Ending:
        """Deliver the hits of a file that was not searched to its end; return ``ending``."""
        if ending not in ("complete", "enough") and self._is_searched and self._hits.count:
            self._add(self._hits)
        return ending

    def _take_lines(self, data: Any, *, matches: bool) -> None:
        texts: list[str | None] = [None]
        first = None
        if data is not None:
            texts = [*_text(data["lines"]).removesuffix("\n").split("\n")]
            first = data["line_number"]
        if matches:
            self._hits.count += len(texts)
        if not self._search.content:
            return
        for index, text in enumerate(texts):
            text = "[a line too long to show]" if text is None else text.removesuffix("\r")
            number = first + index if first is not None else None
            line = Line(number, text[:LINE_LIMIT], matches, max(0, len(text) - LINE_LIMIT))
            self._hits.lines.append(line)
            self._size += len(line.text)


async def _run_python_engine(
    environ: Mapping[str, str], root: Path, request: dict[str, Any], take: Callable[[Record], bool]
) -> Ending:
    out_of_memory = False

    def check(record: Record) -> bool:
        nonlocal out_of_memory
        if record["type"] != "error":
            return take(record)
        reason, text = record["data"]["reason"], record["data"]["text"]
        if reason == "memory":
            out_of_memory = True
            return False
        raise (PatternRefusedError if reason == "pattern" else GlobRefusedError)(text)

    request |= {"parent": os.getpid(), "seconds": ORPHAN_LIMIT_S, "skipped": SKIPPED}
    ending, _stderr = await run_engine(
        # Without the site module and without environment variables meant for other programs.
        [sys.executable, "-ISBXutf8" if sys.dont_write_bytecode else "-ISXutf8", "-c", _START, _FOLDER],
        root=root,
        environ={name: environ[name] for name in _NEEDED if name in environ},
        take=check,
        request=json.dumps(request).encode(),
    )
    return "memory" if out_of_memory else ending


_FOLDER: Final = os.path.dirname(__file__)

_START: Final = "import sys; sys.path.append(sys.argv[1]); import python_engine; python_engine.main()"
"""Imported as a module, so that its bytecode is cached. The folder comes last: it must not shadow the stdlib."""

_NEEDED: Final = ("SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""Variables without which an interpreter may fail to start."""

_HEAD: Final = re.compile(rb'\{"type":"(\w+)"')


async def _records(output: ByteReceiveStream) -> AsyncGenerator[Record, None]:
    rest = bytearray()
    too_long = False
    async for chunk in output:
        if b"\n" in chunk:
            *records, last = bytes(rest + chunk).split(b"\n")
            rest = bytearray(last)
            for record in records:
                yield _record(record, whole=not too_long)
                too_long = False
        elif len(rest) <= RECORD_LIMIT_BYTES:
            rest += chunk
        else:
            too_long = True


def _record(data: bytes, *, whole: bool) -> Record:
    if whole and len(data) <= RECORD_LIMIT_BYTES:
        with contextlib.suppress(orjson.JSONDecodeError):
            record = orjson.loads(data)
            if isinstance(record, dict) and "type" in record:
                return cast("Record", record)
    head = _HEAD.match(data)
    return {"type": head[1].decode() if head else "", "data": None}


async def _read_all(stream: ByteReceiveStream) -> bytes:
    data = bytearray()
    async for chunk in stream:
        data += chunk[: STDERR_LIMIT_BYTES - len(data)]
    return bytes(data)


async def _start(
    command: list[str], root: str | Path, environ: Mapping[str, str], request: bytes | None
) -> Process:
    # Cancellation between fork and registration would lose the process.
    with anyio.CancelScope(shield=True):
        return await anyio.open_process(
            command,
            stdin=subprocess.DEVNULL if request is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=root,
            env=environ,
            # `rg` may be a script around the real program: a group can be killed as a whole.
            start_new_session=os.name == "posix",
        )
    raise AssertionError("nothing cancels this scope")


async def _end(process: Process) -> None:
    """Kill the group of ``process``. Not cancellable, but bounded."""
    with anyio.CancelScope(shield=True):
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if os.name == "posix":
                    os.killpg(process.pid, signal.SIGKILL)
                else:
                    process.kill()
        with anyio.move_on_after(KILL_WAIT_S):
            await process.wait()
        if process.returncode is not None:
            await process.aclose()


def _path(value: dict[str, str]) -> str:
    return value["text"] if "text" in value else os.fsdecode(base64.b64decode(value["bytes"]))


def _text(value: dict[str, str]) -> str:
    """Decode a text of a record: UTF-8 is plain, anything else is in base64."""
    if "text" in value:
        return value["text"]
    return base64.b64decode(value["bytes"]).decode("utf-8", "replace")


def _plain(path: str) -> str:
    """Re-encode ``path`` for a program that uses UTF-8 file names, whatever the encoding is here."""
    return os.fsencode(path).decode("utf-8", "surrogateescape")
