"""Problems that a change of a file has brought: what the model learns about them with the result of the call.

Checkers look at a change after it was made: parsers, language servers. None of them can make a call fail.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

import anyio
from msgspec import Struct
from msgspec.structs import replace

from jumpseat.agent.blocks import JsonObject
from jumpseat.tools.tool import Tool
from jumpseat.tools.workspace_files import FileEdit, Files

log = logging.getLogger(__name__)

LONGEST_LINE: Final = 120
"""Characters of a message or an excerpt that are shown."""

LONGEST_PATH: Final = 400

HEADING: Final = "Problems that this change may have brought:"
LATER: Final = "Problems that earlier changes may have brought:"


class Finding(Struct, frozen=True):
    """A problem at a place in a file.

    ``line`` and ``column`` count from 1, ``column`` in characters. ``source`` is the name of the checker, such as
    ``syntax`` or ``pyright``. ``excerpt`` is the line.
    """

    path: Path
    line: int
    column: int
    message: str
    source: str
    excerpt: str = ""


class Reporter(Struct, frozen=True):
    """A tool of the session's client, or of an MCP server, that lists the diagnostics of files.

    ``schema`` is that of its arguments, ``ask`` returns the text of its result, or ``None`` if it fails; relative
    paths are those below ``cwd``.
    """

    schema: JsonObject
    ask: Callable[[JsonObject], Awaitable[str | None]]
    cwd: Path


_REPORTERS: Final = {
    "custom": re.compile(r"(?:(?:vscode|nvim|ide|editor|lsp)[-_.])?(?:get_?)?diagnostics", re.IGNORECASE),
    "mcp": re.compile(r"\A[^-]++-(?:get_?)?diagnostics", re.IGNORECASE),
}
"""Names of tools that only list diagnostics, by their source; those of MCP servers begin with the server."""

FILE_ARGUMENTS: Final = ("path", "uri", "file", "file_path", "filePath", "filepath", "filename")
"""Names of the argument that says which file a tool lists the diagnostics of."""


def find_reporter(tools: Mapping[str, Tool]) -> Tool | None:
    """Return the tool that lists diagnostics, such as ``vscode_diagnostics`` or ``getDiagnostics``, if any.

    It takes a file, and needs nothing else.
    """
    for name, tool in tools.items():
        pattern = _REPORTERS.get(tool.source)
        if pattern is None or pattern.fullmatch(name) is None:
            continue
        schema = tool.spec.parameters
        takes, needs = schema.get("properties", {}), schema.get("required", [])
        if any(name in takes for name in FILE_ARGUMENTS) and all(name in FILE_ARGUMENTS for name in needs):
            return tool
    return None


class Checker(Protocol):
    """Looks for problems that changes have brought."""

    async def begin(self, paths: Sequence[Path], reporter: Reporter) -> None:
        """Look at files that a call is about to change, if a client reports their diagnostics."""
        ...

    async def prepare(self, path: Path, files: Files) -> None:
        """Look at a file that the model has read, and may change next."""
        ...

    async def check(self, edits: Sequence[FileEdit]) -> Sequence[Finding]:
        """Return the problems that the changes of one call have brought, the most important first, and few.

        Also called without changes, after other calls: some checkers take long.
        """
        ...


def net_changes(edits: Sequence[FileEdit]) -> list[FileEdit]:
    """Return one change for each file that a call has changed; a moved file is changed at its new place.

    A new file has the content before of the deleted file that shares most lines with it.
    """
    net: dict[Path, FileEdit] = {}
    for edit in edits:
        first = net.get(edit.path)
        net[edit.path] = edit if first is None else replace(edit, before=first.before, existed=first.existed)
    deleted = [edit for edit in net.values() if not edit.exists and edit.before]
    changes: list[FileEdit] = []
    for edit in net.values():
        if edit.after is not None and not edit.existed and deleted:
            lines = set(edit.after.split(b"\n"))
            origin = max(deleted, key=lambda other: len(lines.intersection((other.before or b"").split(b"\n"))))
            edit = replace(edit, before=origin.before)
        changes.append(edit)
    return changes


async def begin(checkers: Sequence[Checker], paths: Sequence[Path], reporter: Reporter) -> None:
    """Let checkers look at files that a call is about to change; one that fails does not matter."""
    for checker in checkers:
        try:
            await checker.begin(paths, reporter)
        except Exception:
            log.exception("a checker of changes failed")


async def prepare(checkers: Sequence[Checker], path: Path, files: Files) -> None:
    """Let checkers look at a file that the model has read; one that fails does not matter."""
    for checker in checkers:
        try:
            await checker.prepare(path, files)
        except Exception:
            log.exception("a checker of changes failed")


async def find(checkers: Sequence[Checker], edits: Sequence[FileEdit]) -> list[Finding]:
    """Return what the checkers find, in their order.

    A line of which a later checker reports an error is not reported by an earlier one: compilers know more than
    parsers. A checker that fails finds nothing.
    """
    results: list[Sequence[Finding]] = [()] * len(checkers)

    async def run(index: int, checker: Checker) -> None:
        try:
            results[index] = await checker.check(edits)
        except Exception:
            log.exception("a checker of changes failed")

    async with anyio.create_task_group() as tasks:
        for index, checker in enumerate(checkers):
            tasks.start_soon(run, index, checker)
    found: list[Finding] = []
    told: set[tuple[Path, int]] = set()
    for result in reversed(results):
        new = [finding for finding in result if (finding.path, finding.line) not in told]
        told.update((finding.path, finding.line) for finding in new)
        found[:0] = new
    return found


def described(findings: Sequence[Finding], cwd: Path, *, later: bool = False) -> str:
    """Return the findings as text for the model; paths are relative to ``cwd``. ``later``: of earlier calls."""
    lines = [LATER if later else HEADING]
    for finding in findings:
        name = _short(_relative(finding.path, cwd), LONGEST_PATH)
        lines.append(
            f"{name}:{finding.line}:{finding.column}: {_short(finding.message)} ({_short(finding.source)})"
        )
        if finding.excerpt.strip():
            lines.append(f"  {finding.line}. {_short(finding.excerpt)}")
    return "\n".join(lines)


def _relative(path: Path, cwd: Path) -> str:
    return str(path.relative_to(cwd)) if path.is_relative_to(cwd) else str(path)


def _short(text: str, longest: int = LONGEST_LINE) -> str:
    """Return a text of others as part of a line, without control characters."""
    text = text[: 4 * longest]
    line = "".join(char if char.isprintable() else " " for char in text).rstrip()
    return line if len(line) <= longest else line[: longest - 3] + "..."
