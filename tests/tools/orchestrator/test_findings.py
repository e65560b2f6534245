"""The model learns with the result of a call which problems its change has brought."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import TaskGroup

from jumpseat.agent.settings import SessionSettings
from jumpseat.tools.builtin.apply_patch import TOOL as APPLY_PATCH
from jumpseat.tools.builtin.create import TOOL as CREATE
from jumpseat.tools.builtin.edit import TOOL as EDIT
from jumpseat.tools.builtin.view import TOOL as VIEW
from jumpseat.tools.findings import Checker, Finding, Reporter, prepare
from jumpseat.tools.syntax_checker import SyntaxChecker
from jumpseat.tools.tool import BuiltinTool
from jumpseat.tools.workspace_files import FileEdit, Files
from jumpseat_protocol import events
from tests.support.limits import WAIT_S
from tests.support.sessions import make_session

pytestmark = pytest.mark.anyio


async def results(
    tasks: TaskGroup,
    folder: Path,
    *calls: tuple[str, dict[str, Any]],
    checkers: Sequence[Checker],
    builtin: Sequence[BuiltinTool[Any]] = (CREATE, EDIT, APPLY_PATCH),
) -> list[str]:
    """Return the results that the model has of some calls, each in an answer of its own."""
    script = [{"tool_calls": [{"name": name, "arguments": arguments}]} for name, arguments in calls]
    made = make_session(
        tasks,
        script=[*script, {"text": "done"}],
        settings=SessionSettings(cwd=folder),
        builtin=builtin,
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


async def test_a_file_that_was_viewed_is_parsed_before_its_first_change(tasks: TaskGroup, tmp_path: Path) -> None:
    files = {"a.go": b"package a\n", "b.txt": b"text\n", "c.go": b"package c\n", "d.toml": b"e = 1\n"}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    checker, given = SyntaxChecker(), Files()
    for name in (*files, "missing.go", "large.go"):
        await prepare([checker], tmp_path / name, given)
    viewed = checker.viewed
    name = str(tmp_path / "a.go")
    assert viewed is not None
    assert viewed.find(name, "tree_sitter_go", files["a.go"]) is not None
    broken = b"package a\n\nfunc f( {\n}\n"
    edit = FileEdit(tmp_path / "a.go", tmp_path / "a.go", files["a.go"], broken, existed=True, exists=True)
    assert [finding.line for finding in await checker.check([edit])] == [3]
    assert viewed.find(name, "tree_sitter_go", files["a.go"]) is None
    assert viewed.find(str(tmp_path / "c.go"), "tree_sitter_go", files["c.go"]) is not None


async def test_a_view_prepares_checks_where_files_can_be_changed(tasks: TaskGroup, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a = 1\n")
    view = ("view", {"path": "a.py"})
    for builtin, prepared in (([VIEW, EDIT], [tmp_path / "a.py"]), ([VIEW], [])):
        checker = Fixed()
        await results(tasks, tmp_path, view, view, checkers=[checker], builtin=builtin)
        with anyio.fail_after(WAIT_S):
            while len(checker.prepared) < 2 * len(prepared):
                await checker.news.wait()
        assert checker.prepared == 2 * prepared


async def test_a_file_is_parsed_once_while_its_first_change_is_made(tasks: TaskGroup, tmp_path: Path) -> None:
    (tmp_path / "a.go").write_text("package a\n")
    checker = SyntaxChecker()
    edits = [("package a", "package b"), ("package b", "package c")]
    calls = [("edit", {"path": "a.go", "old_str": old, "new_str": new}) for old, new in edits]
    await results(tasks, tmp_path, *calls, checkers=[checker])
    # The first change has taken over the text that was parsed before it; the second one has needed nothing else.
    assert checker.viewed is not None
    for text in (b"package a\n", b"package b\n", b"package c\n"):
        assert checker.viewed.find(str(tmp_path / "a.go"), "tree_sitter_go", text) is None


class Fixed:
    """A checker with the same findings for each file, or a failure."""

    def __init__(self, *lines: int, source: str = "", error: Exception | None = None) -> None:
        self.lines, self.source, self.error = lines, source, error
        self.seen: list[FileEdit] = []
        self.prepared: list[Path] = []
        self.news = anyio.Event()

    async def begin(self, paths: Sequence[Path], reporter: Reporter) -> None:
        """Look at nothing before a change."""

    async def prepare(self, path: Path, files: Files) -> None:
        self.prepared.append(path)
        self.news.set()
        self.news = anyio.Event()

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
