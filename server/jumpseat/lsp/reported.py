"""Diagnostics that the session's client lists by one of its tools, in place of those of our own servers.

The tool is asked before a change and after it, so that what was there before is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

import anyio
import anyio.to_thread
from msgspec import Struct, field

from jumpseat.agent.blocks import JsonObject
from jumpseat.lsp.delta import Diagnostic, Lines, brought
from jumpseat.parsing.json_text import read_json
from jumpseat.tools.findings import FILE_ARGUMENTS, Reporter
from jumpseat.tools.workspace_files import FileEdit

POLL_S: Final = 0.1
"""Pause between questions to a client that cannot wait for its diagnostics by itself."""

MOST_DIAGNOSTICS: Final = 2000
LARGEST_REPORT: Final = 1024 * 1024
MOST_FILES: Final = 10
"""Files of one call that a tool is asked about one by one."""

_SEVERITIES: Final = {"error": 1, "warning": 2, "info": 3, "information": 3, "hint": 4}
_LINE: Final = re.compile(r"(.{1,1000}?):(\d{1,9}):(\d{1,9}): (error|warning|info|hint): (.*)", re.IGNORECASE)

_ORIGIN: Final = re.compile(r" \[([^\[\]]{1,100})\](?: \(([^()]{1,100})\))?\Z")
"""The checker and its code behind a message, such as ``[ruff F401]`` or ``[F401] (ruff)``."""

Report = Mapping[Path, Sequence[Diagnostic]]


class _Begun(Struct):
    """A call that changes files: what was there before, ``None`` if the client was too slow to say it."""

    reporter: Reporter
    before: Report | None
    left_s: float


class _Change(Struct):
    """The last change: later diagnostics may be of it. ``told`` were shown to the model.

    ``after`` is the latest that the client says; it ``is_settled`` once that includes the change.
    """

    reporter: Reporter
    before: Report
    lines: dict[Path, Lines]
    names: Mapping[str, str]
    after: Report = field(default_factory=dict[Path, Sequence[Diagnostic]])
    is_settled: bool = False
    told: set[tuple[Path, Diagnostic]] = field(default_factory=set[tuple[Path, Diagnostic]])


class Reports:
    """The diagnostics of a session's client. A call waits for them for ``wait_s`` seconds, before and after."""

    def __init__(self, wait_s: float, *, warnings: bool) -> None:
        self._wait_s = wait_s
        self._worst = 2 if warnings else 1
        self._begun: dict[Path, _Begun] = {}
        self._last: _Change | None = None
        self._late: list[tuple[Path, Diagnostic]] = []

    async def begin(self, paths: Sequence[Path], reporter: Reporter) -> None:
        """Ask for the diagnostics before a change of files, which are the client's from here on if it has any."""
        began = anyio.current_time()
        report: Report | None = None
        with anyio.move_on_after(self._wait_s) as limit:
            report = await self._ask(reporter, paths)
            if report is None:
                return
        left_s = 0.0 if limit.cancelled_caught else self._wait_s - (anyio.current_time() - began)
        if report is not None and self._last is not None:
            self._last.after = report
            self._late += await self._new(self._last)
            self._last = None
        begun = _Begun(reporter, report, left_s)
        self._begun |= dict.fromkeys(paths, begun)

    def covers(self, edit: FileEdit) -> bool:
        """Return whether the client has diagnostics of a file that a call has changed."""
        return edit.place in self._begun

    async def check(self, edits: Sequence[FileEdit], names: Mapping[str, str]) -> list[tuple[Path, Diagnostic]]:
        """Return the diagnostics that changes, which are covered, and earlier ones have brought."""
        late, self._late = self._late, []
        begun = next((self._begun.pop(edit.place) for edit in edits), None)
        for edit in edits:
            self._begun.pop(edit.place, None)
        if begun is None:
            return [*late, *await self._later()] if not edits else late
        if begun.before is None:
            return late
        change = self._last = _Change(
            begun.reporter, begun.before, {edit.place: _lines(edit) for edit in edits}, names
        )
        with anyio.move_on_after(begun.left_s):
            await self._follow(change)
        return [*late, *await self._new(change)]

    async def _later(self) -> list[tuple[Path, Diagnostic]]:
        """Return the diagnostics that the client had not found in time for the last change; asks once."""
        change = self._last
        if change is None or change.is_settled:
            return []
        change.is_settled = True
        with anyio.move_on_after(self._wait_s):
            change.after = await self._ask(change.reporter, [*change.lines]) or change.after
        return await self._new(change)

    async def _follow(self, change: _Change) -> None:
        """Ask the client until it has looked at the changed files."""
        last = change.before
        while (report := await self._ask(change.reporter, [*change.lines])) is not None:
            change.after = report
            change.is_settled = report != change.before and (last == report or _waits(change.reporter))
            if change.is_settled or _waits(change.reporter):
                return
            last = report
            await anyio.sleep(POLL_S)

    async def _new(self, change: _Change) -> list[tuple[Path, Diagnostic]]:
        """Return what a change has brought and was not told. Compared in a thread, since it may be much."""
        found = await anyio.to_thread.run_sync(_compare, change)
        new = [one for one in found if one not in change.told]
        change.told.update(new)
        return new

    async def _ask(self, reporter: Reporter, paths: Sequence[Path]) -> Report | None:
        """Return the diagnostics of all files; ``None`` if the client cannot say them."""
        properties = _properties(reporter)
        arguments: JsonObject = {}
        if "severity" in properties:
            arguments["severity"] = "warning" if self._worst == 2 else "error"
        if _waits(reporter):
            arguments["wait_for"] = [str(path) for path in paths]
        report: dict[Path, Sequence[Diagnostic]] = {}
        for part in self._parts(reporter, arguments, paths):
            text = await reporter.ask(part)
            # In a thread, because it may be long.
            found = None if text is None else await anyio.to_thread.run_sync(read_report, text, reporter.cwd)
            if found is None:
                return None
            report |= found
        return {path: [one for one in found if one.severity <= self._worst] for path, found in report.items()}

    def _parts(self, reporter: Reporter, arguments: JsonObject, paths: Sequence[Path]) -> list[JsonObject]:
        """Return the arguments of one call for all files, or of one for each if the tool needs a file."""
        required = reporter.schema.get("required", [])
        name = next((name for name in required if name in FILE_ARGUMENTS), None)
        if name is None:
            return [arguments]
        is_uri = name.lower() == "uri"
        return [{**arguments, name: path.as_uri() if is_uri else str(path)} for path in paths[:MOST_FILES]]


def _compare(change: _Change) -> list[tuple[Path, Diagnostic]]:
    found: list[tuple[Path, Diagnostic]] = []
    unchanged = Lines("", "")
    for path, after in change.after.items():
        before = change.before.get(path, ())
        # An editor that has not looked at the file yet says what it said before, at the old places.
        if list(after) != list(before) and len(after) <= MOST_DIAGNOSTICS:
            lines = change.lines.get(path, unchanged)
            found += ((path, one) for one in brought(before, after, lines, change.names))
    return found


def _waits(reporter: Reporter) -> bool:
    """Return whether the client can wait itself until it has looked at files."""
    return "wait_for" in _properties(reporter)


def _properties(reporter: Reporter) -> Mapping[str, Any]:
    return reporter.schema.get("properties", {})


def _lines(edit: FileEdit) -> Lines:
    return Lines((edit.before or b"").decode("utf-8", "replace"), (edit.after or b"").decode("utf-8", "replace"))


# --- what tools answer ------------------------------------------------------------------------------------------


def read_report(text: str, cwd: Path) -> dict[Path, list[Diagnostic]] | None:
    """Return the diagnostics in the result of a tool, by file; ``None`` if the result cannot be understood.

    The result has a line ``FILE:LINE:COLUMN: SEVERITY: MESSAGE [SOURCE]`` for each, or is JSON: an array of objects
    with ``uri`` or a path, and ``diagnostics`` as in the Language Server Protocol.
    """
    text = text[:LARGEST_REPORT].strip()
    if text[:1] in ("[", "{"):
        try:
            return _of_json(read_json(text.encode()), cwd)
        except (ValueError, TypeError, AttributeError, KeyError, OverflowError):
            return None
    report: dict[Path, list[Diagnostic]] = {}
    for line in text.splitlines():
        if (match := _LINE.fullmatch(line)) is not None:
            name, row, column, severity, message = match.groups()
            origin = _ORIGIN.search(message)
            source = "" if origin is None else " ".join(filter(None, (origin[2], origin[1])))
            message = message if origin is None else message[: origin.start()]
            found = Diagnostic(int(row) - 1, int(column) - 1, message, _SEVERITIES[severity.lower()], source)
            report.setdefault(cwd / name, []).append(found)
    return report if report or not text or text.lower().startswith("no ") else None


def _of_json(value: Any, cwd: Path) -> dict[Path, list[Diagnostic]]:
    """Return the diagnostics in JSON.

    Raises:
        ValueError, TypeError, AttributeError, KeyError: the JSON has another form.
    """
    report: dict[Path, list[Diagnostic]] = {}
    for path, found in _entries(value, cwd):
        start = found["range"]["start"] if "range" in found else found
        severity = found.get("severity", 1)
        code = found.get("code")
        report.setdefault(path, []).append(
            Diagnostic(
                int(start["line"]),
                int(start.get("character", 0)),
                str(found["message"]),
                _SEVERITIES[severity.lower()] if isinstance(severity, str) else int(severity),
                str(found.get("source") or ""),
                "" if code is None else str(cast("JsonObject", code)["value"] if isinstance(code, dict) else code),
            )
        )
    return report


def _entries(value: Any, cwd: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield each diagnostic with its file."""
    if isinstance(value, dict) and "diagnostics" not in value:
        # By file.
        value = [{"uri": name, "diagnostics": found} for name, found in cast("dict[str, Any]", value).items()]
    for entry in cast("list[dict[str, Any]]", value if isinstance(value, list) else [value]):
        name = next((entry[key] for key in FILE_ARGUMENTS if key in entry), None)
        if not isinstance(name, str):
            raise TypeError("expected a file")
        for found in entry.get("diagnostics", [entry]):
            yield _path(name, cwd), found


def _path(name: str, cwd: Path) -> Path:
    return Path(url2pathname(unquote(urlsplit(name).path))) if name.startswith("file:") else cwd / name
