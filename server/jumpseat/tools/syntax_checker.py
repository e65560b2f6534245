"""Check the syntax of files that a call has changed, in a thread. The first of them imports the parser.

Files that the model reads, or is about to change, are parsed in the background, so that of the first change, too,
only what has changed is parsed while the call waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio.to_thread

from jumpseat.tools.findings import Finding, Reporter
from jumpseat.tools.workspace_files import FileEdit, Files

if TYPE_CHECKING:
    from jumpseat.tools.syntax.versions import Versions

SOURCE: Final = "syntax"

MOST_SHOWN: Final = 3
"""Limit of the errors of one call: one mistake can confuse a parser in many places."""


LONGEST_S: Final = 2.0
"""How long a call waits for its checks. A parser that takes longer finds nothing."""

MOST_AT_ONCE: Final = 2
"""Parsers of one session that run at a time, those included that nobody waits for any more."""


MOST_WAITING: Final = 8
"""Files that wait to be parsed in the background. Of more, the first change takes longer."""

VIEWED_BYTES: Final = 256 * 1024
"""Limit of the text of the files that were parsed in the background, and were not changed since."""


class SyntaxChecker:
    """Finds the syntax errors that changes have brought. ``viewed`` are the files that were parsed before."""

    def __init__(self) -> None:
        self._limiter = anyio.CapacityLimiter(MOST_AT_ONCE)
        self._one_at_a_time = anyio.CapacityLimiter(1)
        self._versions: Versions | None = None
        self._preparing: dict[Path, anyio.Event] = {}
        self.viewed: Versions | None = None

    async def begin(self, paths: Sequence[Path], reporter: Reporter) -> None:
        """Do nothing: both texts are in the change."""

    async def prepare(self, path: Path, files: Files) -> None:
        if path in self._preparing or self._one_at_a_time.statistics().tasks_waiting >= MOST_WAITING:
            return
        ended = self._preparing[path] = anyio.Event()
        try:
            with suppress(OSError):
                await anyio.to_thread.run_sync(
                    self._prepare, path, files, abandon_on_cancel=True, limiter=self._one_at_a_time
                )
        finally:
            del self._preparing[path]
            ended.set()

    def _prepare(self, path: Path, files: Files) -> None:
        from jumpseat.tools.syntax.changes import LARGEST, prepare
        from jumpseat.tools.syntax.languages import language_of
        from jumpseat.tools.syntax.versions import Versions

        if language_of(path.name) is not None:
            self.viewed = self.viewed or Versions(VIEWED_BYTES)
            prepare(str(path), files.read(path, LARGEST), self.viewed, self._versions)

    async def check(self, edits: Sequence[FileEdit]) -> list[Finding]:
        if not edits:
            return []
        from jumpseat.tools.syntax.languages import language_of

        edits = [edit for edit in edits if edit.kept and edit.after and language_of(edit.path.name) is not None]
        found: list[Finding] = []
        if edits:
            from jumpseat.tools.syntax.versions import Versions

            self._versions = self._versions or Versions()
            with anyio.move_on_after(LONGEST_S):
                for edit in edits:
                    if (ended := self._preparing.get(edit.path)) is not None:
                        await ended.wait()
                found = await anyio.to_thread.run_sync(
                    _check, edits, self._versions, self.viewed, abandon_on_cancel=True, limiter=self._limiter
                )
        return found


def _check(edits: Sequence[FileEdit], versions: Versions, viewed: Versions | None) -> list[Finding]:
    from jumpseat.tools.syntax.changes import new_problems

    found: list[Finding] = []
    for edit in edits:
        after = edit.after or b""
        lines = after.split(b"\n")
        name = str(edit.path)
        if viewed is not None and edit.before is not None:
            viewed.hand_over(name, edit.before, versions)
        for problem in new_problems(name, edit.before, after, versions)[: MOST_SHOWN - len(found)]:
            line = lines[problem.row] if problem.row < len(lines) else b""
            column = len(line[: problem.column].decode("utf-8", "replace")) + 1
            excerpt = line.decode("utf-8", "replace").rstrip()
            found.append(Finding(edit.path, problem.row + 1, column, problem.message, SOURCE, excerpt))
    return found
