"""The model learns with the result of a call which problems its change has brought."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from anyio.abc import TaskGroup

from jumpseat.agent.settings import SessionSettings
from jumpseat.tools.builtin.apply_patch import TOOL as APPLY_PATCH
from jumpseat.tools.builtin.create import TOOL as CREATE
from jumpseat.tools.builtin.edit import TOOL as EDIT
from jumpseat.tools.findings import Checker, Finding, Reporter
from jumpseat.tools.syntax_checker import SyntaxChecker
from jumpseat.tools.workspace_files import FileEdit
from jumpseat_protocol import events
from tests.support.sessions import make_session

pytestmark = pytest.mark.anyio


async def results(
    tasks: TaskGroup, folder: Path, *calls: tuple[str, dict[str, Any]], checkers: Sequence[Checker]
) -> list[str]:
    """Return the results that the model has of some calls, each in an answer of its own."""
    script = [{"tool_calls": [{"name": name, "arguments": arguments}]} for name, arguments in calls]
    made = make_session(
        tasks,
        script=[*script, {"text": "done"}],
        settings=SessionSettings(cwd=folder),
        builtin=[CREATE, EDIT, APPLY_PATCH],
        approve_all=True,
        checkers=checkers,
    )
    await made.ask("change")
    return [
        payload.result.content if payload.result is not None else ""
        for payload in made.client.payloads(events.ToolExecutionComplete)
    ]


async def test_the_result_of_a_change_has_the_errors_that_it_brought_and_no_others(
    tasks: TaskGroup, tmp_path: Path
) -> None:
    (tmp_path / "old.go").write_text("package a\n\nfunc f() {\n\treturn )\n}\n\nfunc g() {\n}\n")
    assert await results(
        tasks,
        tmp_path,
        ("create", {"path": "new.json", "file_text": '{\n  "é": [1, 2}\n'}),
        ("create", {"path": "other.json", "file_text": "{}\n"}),
        ("edit", {"path": "old.go", "old_str": "func g() {", "new_str": "func g( {"}),
        ("edit", {"path": "old.go", "old_str": "func g( {", "new_str": "func g() {"}),
        checkers=[SyntaxChecker()],
    ) == [
        "Created file new.json with 16 characters\n"
        "Problems that this change may have brought:\n"
        "new.json:2:13: ']' is missing (syntax)\n"
        '  2.   "é": [1, 2}',
        "Created file other.json with 3 characters",
        "File old.go updated with changes.\n"
        "Problems that this change may have brought:\n"
        "old.go:7:8: ')' is missing (syntax)\n"
        "  7. func g( {",
        "File old.go updated with changes.",
    ]


async def test_a_patch_is_checked_file_by_file_and_a_moved_file_has_no_new_errors(
    tasks: TaskGroup, tmp_path: Path
) -> None:
    (tmp_path / "old.go").write_text("package a\n\nfunc f() {\n\treturn )\n}\n\nvar x = 1\n")
    patch = (
        "*** Begin Patch\n*** Update File: old.go\n*** Move to: new.go\n@@\n-var x = 1\n+var x = 2\n"
        "*** Add File: b.json\n+[1\n*** End Patch\n"
    )
    call = ("apply_patch", {"input": patch})
    (result,) = await results(tasks, tmp_path, call, checkers=[SyntaxChecker()])
    assert result.endswith(
        "Problems that this change may have brought:\nb.json:1:3: ']' is missing (syntax)\n  1. [1"
    )
    assert "new.go:" not in result


class Fixed:
    """A checker with the same findings for each file, or a failure."""

    def __init__(self, *lines: int, source: str = "", error: Exception | None = None) -> None:
        self.lines, self.source, self.error = lines, source, error
        self.seen: list[FileEdit] = []

    async def begin(self, paths: Sequence[Path], reporter: Reporter) -> None:
        """Look at nothing before a change."""

    async def check(self, edits: Sequence[FileEdit]) -> list[Finding]:
        self.seen += edits
        if self.error is not None:
            raise self.error
        return [Finding(edit.path, line, 1, "wrong", self.source) for edit in edits for line in self.lines]


async def test_a_line_is_reported_once_and_a_checker_that_fails_changes_nothing(
    tasks: TaskGroup, tmp_path: Path
) -> None:
    broken = Fixed(error=OSError("gone"))
    checkers = [Fixed(1, 2, source="parser"), broken, Fixed(2, 3, source="compiler")]
    created = ("create", {"path": "a.txt", "file_text": "a\nb\nc\n"})
    assert await results(tasks, tmp_path, created, checkers=checkers) == [
        "Created file a.txt with 6 characters\n"
        "Problems that this change may have brought:\n"
        "a.txt:1:1: wrong (parser)\n"
        "a.txt:2:1: wrong (compiler)\n"
        "a.txt:3:1: wrong (compiler)"
    ]
    assert [edit.after for edit in broken.seen] == [b"a\nb\nc\n"]


async def test_a_call_that_changes_nothing_is_not_checked(tasks: TaskGroup, tmp_path: Path) -> None:
    checker = Fixed(1)
    call = ("edit", {"path": "none.py", "old_str": "a", "new_str": "b"})
    (result,) = await results(tasks, tmp_path, call, checkers=[checker])
    assert "may have brought" not in json.dumps(result)
    assert not checker.seen
