"""The editor's buffers for the file tools, and its terminals for commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.editor import Schemas, failing, option, running_editor
from tests.support.server import calls

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
