"""The editor's buffers for the file tools, and its terminals for commands."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest
from anyio.abc import TaskGroup

from jumpseat.acp.editor.editor import Editor
from jumpseat.acp.editor.editor_buffers import LentTerminals
from jumpseat.acp.editor.mcp_servers import EditorMcp
from jumpseat.tools.shell.terminal import UNKNOWN
from jumpseat_protocol.wire import WireModel
from tests.support.editor import Schemas, failing, option, running_editor
from tests.support.limits import WAIT_S
from tests.support.server import calls
from tests.tools.session import call, tool_session

R = TypeVar("R", bound=WireModel)

pytestmark = pytest.mark.anyio

FILES: dict[str, Any] = {"fs": {"readTextFile": True, "writeTextFile": True}}
ALLOWED = {"session/request_permission": option("allow_once")}
DONE = {"text": "{{last_tool_result}}"}


class Buffers:
    """The buffers of an editor, by the stem of their paths. ``asked`` lists the paths that were read."""

    def __init__(self, **texts: str) -> None:
        self.texts = texts
        self.asked: list[str] = []

    def read(self, params: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(params["path"])
        return {"content": self.texts[Path(params["path"]).stem]}

    def write(self, params: dict[str, Any]) -> dict[str, Any]:
        self.texts[Path(params["path"]).stem] = params["content"]
        return {}

    def answers(self) -> dict[str, Any]:
        return {**ALLOWED, "fs/read_text_file": self.read, "fs/write_text_file": self.write}


async def test_view_shows_unsaved_changes(tmp_path: Path, schemas: Schemas) -> None:
    (tmp_path / "a.txt").write_text("saved\n")
    buffers = Buffers(a="changed\n")
    turns = [calls("view", path="a.txt"), DONE]
    async with running_editor(tmp_path, schemas, *turns, capabilities=FILES, answers=buffers.answers()) as (
        _,
        editor,
    ):
        session = await editor.new(tmp_path)
        await editor.say(session, "go")
        assert "1. changed" in editor.answer_text(session)
        assert buffers.asked == [str(tmp_path / "a.txt")]


async def test_edit_changes_the_buffer_and_not_the_file(tmp_path: Path, schemas: Schemas) -> None:
    (tmp_path / "a.txt").write_text("saved\n")
    buffers = Buffers(a="changed\nline\n")
    turns = [calls("edit", path="a.txt", old_str="line", new_str="end"), DONE]
    async with running_editor(tmp_path, schemas, *turns, capabilities=FILES, answers=buffers.answers()) as (
        _,
        editor,
    ):
        await editor.say(await editor.new(tmp_path), "go")
        request = await editor.question("session/request_permission")
        assert request["params"]["toolCall"]["content"][0]["oldText"] == "changed\nline\n"
        assert buffers.texts["a"] == "changed\nend\n"
        assert (tmp_path / "a.txt").read_text() == "saved\n"


async def test_a_buffer_that_changes_while_the_question_is_open_is_left(tmp_path: Path, schemas: Schemas) -> None:
    (tmp_path / "a.txt").write_text("saved\n")
    buffers = Buffers(a="changed\nline\n")

    def approve(_params: dict[str, Any]) -> dict[str, Any]:
        buffers.texts["a"] = f"more\n{buffers.texts['a']}"
        return option("allow_once")

    turns = [
        calls("edit", path="a.txt", old_str="line", new_str="end"),
        calls("apply_patch", "2", input="*** Update File: a.txt\n-line\n+end\n"),
        DONE,
    ]
    answers = buffers.answers() | {"session/request_permission": approve}
    async with running_editor(tmp_path, schemas, *turns, capabilities=FILES, answers=answers) as (_, editor):
        session = await editor.new(tmp_path)
        await editor.say(session, "go")
        assert buffers.texts["a"] == "more\nmore\nchanged\nline\n"
        assert "has changed since permission was asked" in editor.answer_text(session)


async def test_a_patch_changes_several_buffers_after_one_question(tmp_path: Path, schemas: Schemas) -> None:
    (tmp_path / "a.txt").write_text("saved\n")
    (tmp_path / "old.txt").write_text("old\n")
    buffers = Buffers(a="changed\nline\n", old="old\n")
    patch = (
        "*** Update File: a.txt\n@@ changed\n-line\n+end\n*** Add File: new.txt\n+new\n*** Delete File: old.txt\n"
    )
    turns = [calls("apply_patch", input=patch), DONE]
    async with running_editor(tmp_path, schemas, *turns, capabilities=FILES, answers=buffers.answers()) as (
        _,
        editor,
    ):
        await editor.say(await editor.new(tmp_path), "go")
        request = await editor.question("session/request_permission")
        shown = [
            (Path(content["path"]).name, content.get("oldText"), content["newText"])
            for content in request["params"]["toolCall"]["content"]
        ]
        assert shown == [
            ("a.txt", "changed\nline\n", "changed\nend\n"),
            ("new.txt", None, "new\n"),
            ("old.txt", "old\n", ""),
        ]
        assert buffers.texts == {"a": "changed\nend\n", "old": "old\n", "new": "new\n"}
        assert (tmp_path / "a.txt").read_text() == "saved\n"
        assert not (tmp_path / "old.txt").exists()


async def test_create_writes_through_the_editor_and_never_overwrites(tmp_path: Path, schemas: Schemas) -> None:
    (tmp_path / "old.txt").write_text("old")
    buffers = Buffers()
    turns = [
        calls("create", "c1", path="sub/new.txt", file_text="new"),
        calls("create", "c2", path="old.txt", file_text="new"),
        DONE,
    ]
    async with running_editor(tmp_path, schemas, *turns, capabilities=FILES, answers=buffers.answers()) as (
        _,
        editor,
    ):
        session = await editor.new(tmp_path)
        await editor.say(session, "go")
        assert buffers.texts == {"new": "new"}
        assert "already exists" in editor.answer_text(session)


async def test_the_line_ends_of_the_file_are_kept(tmp_path: Path, schemas: Schemas) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    buffers = Buffers(a="one\ntwo\n")
    turns = [calls("edit", path="a.txt", old_str="two", new_str="three"), DONE]
    async with running_editor(tmp_path, schemas, *turns, capabilities=FILES, answers=buffers.answers()) as (
        _,
        editor,
    ):
        await editor.say(await editor.new(tmp_path), "go")
        assert buffers.texts["a"] == "one\r\nthree\r\n"


async def test_a_file_is_read_from_the_disk_if_the_editor_fails_to_read_it(
    tmp_path: Path, schemas: Schemas
) -> None:
    (tmp_path / "a.txt").write_text("saved\n")
    answers = {**ALLOWED, "fs/read_text_file": failing("no")}
    only_read = {"fs": {"readTextFile": True}}
    turns = [calls("edit", path="a.txt", old_str="saved", new_str="kept"), DONE]
    async with running_editor(tmp_path, schemas, *turns, capabilities=only_read, answers=answers) as (_, editor):
        await editor.say(await editor.new(tmp_path), "go")
        assert (tmp_path / "a.txt").read_text() == "kept\n"


async def test_a_write_that_the_editor_refuses_fails(tmp_path: Path, schemas: Schemas) -> None:
    answers = {**ALLOWED, "fs/write_text_file": failing("read only")}
    turns = [calls("create", path="new.txt", file_text="x"), DONE]
    async with running_editor(tmp_path, schemas, *turns, capabilities=FILES, answers=answers) as (_, editor):
        session = await editor.new(tmp_path)
        await editor.say(session, "go")
        assert "read only" in editor.answer_text(session)
        assert not (tmp_path / "new.txt").exists()


class Saving(Buffers):
    """The buffers of an editor that saves what it is given. ``loads``: the buffers follow the disk."""

    def __init__(self, *, loads: bool = False, keeps: bool = False, **texts: str) -> None:
        super().__init__(**texts)
        self.loads = loads
        self.keeps = keeps

    def read(self, params: dict[str, Any]) -> dict[str, Any]:
        name, path = Path(params["path"]).stem, Path(params["path"])
        if self.loads or name not in self.texts:
            self.texts[name] = path.read_text()
        return super().read(params)

    def write(self, params: dict[str, Any]) -> dict[str, Any]:
        Path(params["path"]).write_bytes(params["content"].encode())
        return {} if self.keeps else super().write(params)


APPEND = calls("bash", command="printf 'by a command\\n' >> a.txt; printf new > b.txt")


async def test_an_edit_does_not_undo_the_change_of_a_command_behind_an_older_buffer(
    tmp_path: Path, schemas: Schemas
) -> None:
    view = calls("view", path="a.txt")
    turns = [
        *(view, APPEND, calls("edit", path="a.txt", old_str="one", new_str="1"), view, APPEND),
        *(calls("edit", path="a.txt", old_str="two", new_str="2"), view, DONE),
    ]
    editors = {
        "never loads": Saving(),
        "loads": Saving(loads=True),
        "has the buffer of the beginning": Saving(keeps=True),
        "converts line ends": Saving(a="one\r\ntwo"),
        "has a byte order mark": Saving(a="\ufeffone\ntwo\n"),
    }
    for name, buffers in editors.items():
        folder = tmp_path / name
        folder.mkdir()
        file = folder / "a.txt"
        file.write_text("one\ntwo\n")
        async with running_editor(folder, schemas, *turns, capabilities=FILES, answers=buffers.answers()) as (
            _,
            editor,
        ):
            session = await editor.new(folder)
            await editor.say(session, "go")
            assert file.read_text() == "1\n2\nby a command\nby a command\n", name
            assert "4. by a command" in editor.answer_text(session), name


async def test_an_edit_of_unsaved_changes_is_refused_after_a_command_has_changed_the_file(
    tmp_path: Path, schemas: Schemas
) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one\n")
    buffers = Buffers(a="one\nunsaved\n")
    edit = calls("edit", path="a.txt", old_str="one", new_str="1")
    view = calls("view", path="a.txt")
    turns = [edit, APPEND, edit, DONE, view, DONE, edit, DONE]
    async with running_editor(tmp_path, schemas, *turns, capabilities=FILES, answers=buffers.answers()) as (
        _,
        editor,
    ):
        session = await editor.new(tmp_path)
        await editor.say(session, "go")
        assert "ask the user to save or to reload the file" in editor.answer_text(session)
        assert (buffers.texts["a"], file.read_text()) == ("1\nunsaved\n", "one\nby a command\n")
        await editor.say(session, "view")
        assert "2. by a command" in editor.answer_text(session)
        assert "The user's editor has another text of it" in editor.answer_text(session)
        buffers.texts["a"] = file.read_text()
        await editor.say(session, "again")
        assert buffers.texts["a"] == "1\nby a command\n"


async def test_a_buffer_whose_history_is_not_known_does_not_replace_the_change_of_a_command(
    tmp_path: Path, schemas: Schemas
) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one\n")
    buffers = Saving(a="one\n", b="unsaved, before there was a file")
    turns = [
        *(APPEND, calls("edit", path="a.txt", old_str="one", new_str="1")),
        *(calls("edit", path="b.txt", old_str="unsaved", new_str="x"), DONE),
    ]
    async with running_editor(tmp_path, schemas, *turns, capabilities=FILES, answers=buffers.answers()) as (
        _,
        editor,
    ):
        await editor.say(await editor.new(tmp_path), "go")
        assert file.read_text() == "one\nby a command\n"
        assert (tmp_path / "b.txt").read_text() == "new"


async def test_changes_that_the_user_saves_and_continues_are_edited(tmp_path: Path, schemas: Schemas) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one\n")
    buffers = Buffers(a="one\n")
    edit = calls("edit", path="a.txt", old_str="more", new_str="changed")
    turns = [calls("bash", command="true"), calls("view", path="a.txt"), DONE, edit, DONE]
    async with running_editor(tmp_path, schemas, *turns, capabilities=FILES, answers=buffers.answers()) as (
        _,
        editor,
    ):
        session = await editor.new(tmp_path)
        await editor.say(session, "go")
        # The times of files lag behind the clock.
        now = time.time_ns()
        while file.stat().st_ctime_ns <= now:
            file.write_text("one\nsaved\n")
        buffers.texts["a"] = "one\nsaved\nmore\n"
        await editor.say(session, "edit")
        assert buffers.texts["a"] == "one\nsaved\nchanged\n"


# --- terminals --------------------------------------------------------------------------------------------------


async def test_commands_run_in_a_terminal_of_the_editor(tmp_path: Path, schemas: Schemas) -> None:
    answers = {
        **ALLOWED,
        "terminal/create": {"terminalId": "t1"},
        "terminal/wait_for_exit": {"exitCode": 3},
        "terminal/output": {"output": "from the editor\n", "truncated": False, "exitStatus": {"exitCode": 3}},
        "terminal/release": {},
    }
    turns = [calls("bash", command="echo not here"), DONE]
    async with running_editor(tmp_path, schemas, *turns, capabilities={"terminal": True}, answers=answers) as (
        _,
        editor,
    ):
        session = await editor.new(tmp_path)
        await editor.say(session, "go")
        created = (await editor.question("terminal/create"))["params"]
        assert created["args"][-1] == "echo not here"
        assert created["cwd"] == str(tmp_path)
        terminal = [{"type": "terminal", "terminalId": "t1"}]
        assert [
            update["content"] for update in editor.updates(session, "tool_call_update") if "content" in update
        ] == [terminal]
        assert "from the editor\n<exited with exit code 3>" in editor.answer_text(session)
        await editor.question("terminal/release")


@pytest.mark.parametrize(
    ("failing_answers", "result"),
    [
        ({"terminal/wait_for_exit": failing("lost")}, "from the editor\n<exited with exit code 3>"),
        ({"terminal/wait_for_exit": None}, "from the editor\n<exited with exit code 3>"),
        ({"terminal/output": failing("gone"), "terminal/release": failing("gone")}, "<exited with exit code 3>"),
        ({"terminal/wait_for_exit": failing("lost"), "terminal/output": failing("gone")}, UNKNOWN),
        ({"terminal/wait_for_exit": None, "terminal/output": failing("gone")}, UNKNOWN),
    ],
    ids=["wait fails", "wait is not answered", "output fails", "both fail", "output fails, no wait"],
)
async def test_a_failing_terminal_ends_in_a_clear_result(
    tmp_path: Path, schemas: Schemas, failing_answers: dict[str, Any], result: str
) -> None:
    ended = {"output": "from the editor\n", "truncated": False, "exitStatus": {"exitCode": 3}}
    answers = {
        **ALLOWED,
        "terminal/create": {"terminalId": "t1"},
        "terminal/wait_for_exit": {"exitCode": 3},
        "terminal/output": ended,
        "terminal/release": {},
        **failing_answers,
    }
    known = {method: answer for method, answer in answers.items() if answer is not None}
    turns = [calls("bash", command="touch ran"), DONE]
    async with running_editor(tmp_path, schemas, *turns, capabilities={"terminal": True}, answers=known) as (
        _,
        editor,
    ):
        session = await editor.new(tmp_path)
        await editor.say(session, "go")
        assert result in editor.answer_text(session)
        await editor.question("terminal/release")
    assert not (tmp_path / "ran").exists()


class SilentEditor:
    """An editor that answers a request for a terminal when ``answer`` is set."""

    def __init__(self, tasks: TaskGroup) -> None:
        self.tasks = tasks
        self.answer = anyio.Event()
        self.released = anyio.Event()
        self.asked: list[str] = []

    def notify(self, method: str, params: dict[str, Any]) -> None:
        raise AssertionError(method)

    async def ask(self, method: str, params: dict[str, Any], result: type[R]) -> R:
        self.asked.append(method)
        if method == "terminal/create":
            await self.answer.wait()
        else:
            self.released.set()
        return result.model_validate({"terminalId": "late"} if method == "terminal/create" else {})


async def test_a_command_whose_terminal_never_comes_is_given_up_and_a_late_terminal_is_released(
    tmp_path: Path,
) -> None:
    async with anyio.create_task_group() as tasks:
        editor = SilentEditor(tasks)
        terminals = LentTerminals(
            Editor(editor, EditorMcp(editor.ask)), "s", lambda _call, _terminal: None, timeout_s=0.25
        )
        async with tool_session(tmp_path, terminals=terminals) as ctx:
            first = await call(ctx, "bash", command="touch ran")
            assert not first.ok
            assert "did not open a terminal within 0.25 seconds. It may have begun" in first.text
            second = await call(ctx, "bash", command="echo here")
            assert second.text == "here\n<exited with exit code 0>"
        assert editor.asked == ["terminal/create"]
        editor.answer.set()
        with anyio.fail_after(WAIT_S):
            await editor.released.wait()
    assert not (tmp_path / "ran").exists()


async def test_cancel_kills_the_command_in_the_terminal(tmp_path: Path, schemas: Schemas) -> None:
    answers = {
        **ALLOWED,
        "terminal/create": {"terminalId": "t1"},
        "terminal/output": {"output": "", "truncated": False},
        "terminal/kill": {},
        "terminal/release": {},
    }
    turns = [calls("bash", command="sleep 60"), DONE]
    async with running_editor(tmp_path, schemas, *turns, capabilities={"terminal": True}, answers=answers) as (
        _,
        editor,
    ):
        session = await editor.new(tmp_path)
        prompt = await editor.begin(session, "go")
        waited = await editor.question("terminal/wait_for_exit")
        await editor.cancel(session)
        await editor.question("terminal/kill")
        await editor.answer(waited, {"signal": "SIGTERM"})
        assert (await editor.response(prompt))["result"]["stopReason"] == "cancelled"
        await editor.question("terminal/release")


async def test_the_server_exits_if_the_editor_disconnects_while_its_terminal_runs(
    tmp_path: Path, schemas: Schemas
) -> None:
    answers = {**ALLOWED, "terminal/create": {"terminalId": "t1"}}
    turns = [calls("bash", command="sleep 60"), DONE]
    async with running_editor(tmp_path, schemas, *turns, capabilities={"terminal": True}, answers=answers) as (
        server,
        editor,
    ):
        await editor.begin(await editor.new(tmp_path), "go")
        await editor.question("terminal/wait_for_exit")
        await server.close_stdin()
        assert await server.exit_code() == 0


async def test_a_command_runs_in_the_server_if_the_editor_creates_no_terminal(
    tmp_path: Path, schemas: Schemas
) -> None:
    answers = {**ALLOWED, "terminal/create": failing("no room")}
    turns = [calls("bash", command="echo here"), DONE]
    async with running_editor(tmp_path, schemas, *turns, capabilities={"terminal": True}, answers=answers) as (
        _,
        editor,
    ):
        session = await editor.new(tmp_path)
        await editor.say(session, "go")
        assert "here\n<exited with exit code 0>" in editor.answer_text(session)
