"""The project's description in a session, and the reminder of its check, over the real wire."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jumpseat.agent.session.checks import is_check
from tests.support.model_server import ModelServer
from tests.support.provided import at, says, send_prompt, serving
from tests.support.server import JsonObject, RunningServer, calls, running_server, scripted

pytestmark = pytest.mark.anyio

WRITE = calls("create", "call-w", path="new.txt", file_text="x")
CHECK = calls("bash", "call-c", command="make test")
LOOK = calls("bash", "call-l", command="ls && git status")
DONE = {"text": "Done."}
ON: JsonObject = {"checkReminder": True}


def project(folder: Path, *, check: bool = True) -> Path:
    """Make a project, with a check that is known."""
    made = folder / "project"
    made.mkdir(exist_ok=True)
    if check:
        (made / "Makefile").write_text("test:\n\ttrue\n")
    return made


async def reminders(
    server: RunningServer, *turns: JsonObject, prompt: JsonObject | None = None, **options: Any
) -> list[str]:
    """Return the reminders in the run of a prompt whose calls are all allowed."""
    folder = server.home.parent / "project"
    # Of an earlier run: files that exist are not created.
    (folder / "new.txt").unlink(missing_ok=True)
    session = await server.wire.create(scripted(*turns), workingDirectory=str(folder), **{**ON, **options})
    await server.wire.call("session.permissions.setApproveAll", {"sessionId": session, "enabled": True})
    events = await server.wire.prompt(session, **(prompt or {}))
    return [
        event["data"]["content"]
        for event in events
        if event["type"] == "user.message" and event["data"].get("source") == "check_reminder"
    ]


async def test_a_run_that_changed_files_without_a_check_is_reminded_once(tmp_path: Path) -> None:
    project(tmp_path)
    async with running_server(tmp_path) as server:
        (text,) = await reminders(server, WRITE, DONE, DONE)
        assert "Run `make test` now" in text
        # Looking at files is no check, and neither is a check before the change.
        assert len(await reminders(server, CHECK, WRITE, LOOK, DONE, DONE)) == 1
        for turns in ((WRITE, CHECK, DONE), (LOOK, DONE), (CHECK, DONE)):
            assert await reminders(server, *turns) == []
        assert await reminders(server, WRITE, DONE, checkReminder=False) == []
        assert await reminders(server, WRITE, DONE, availableTools=["create"]) == []
        assert await reminders(server, WRITE, DONE, prompt={"agentMode": "plan"}) == []


async def test_a_command_that_changes_files_is_noticed_and_prose_needs_no_check(tmp_path: Path) -> None:
    folder = project(tmp_path)
    (folder / "a.py").write_text("x = 1\n")
    change = calls("bash", "call-s", command="sed -i s/1/2/ a.py")
    add = calls("bash", "call-a", command="mkdir -p b && cp a.py b/c.py")
    prose = calls("bash", "call-p", command="echo new >> notes.md")
    write = calls("create", "call-n", path="NEWS.md", file_text="x")
    outside = calls("create", "call-o", path=str(tmp_path / "scratch.py"), file_text="x")
    async with running_server(tmp_path) as server:
        for tracking in (False, True):
            options: dict[str, Any] = {"enableFileChangeTracking": tracking}
            (folder / "a.py").write_text("x = 1\n")
            assert len(await reminders(server, change, DONE, DONE, **options)) == 1
            (folder / "b" / "c.py").unlink(missing_ok=True)
            assert len(await reminders(server, add, DONE, DONE, **options)) == 1
            (folder / "a.py").write_text("x = 1\n")
            assert await reminders(server, change, CHECK, DONE, **options) == []
            assert await reminders(server, prose, LOOK, DONE, **options) == []
        assert await reminders(server, write, outside, DONE) == []


async def test_without_a_known_check_or_by_default_there_is_no_reminder(tmp_path: Path) -> None:
    project(tmp_path, check=False)
    async with running_server(tmp_path) as server:
        assert await reminders(server, WRITE, DONE) == []
        project(tmp_path)
        assert await reminders(server, WRITE, DONE, checkReminder=None) == []


async def test_the_configuration_decides_for_all_sessions(tmp_path: Path) -> None:
    project(tmp_path)
    async with running_server(tmp_path, config="[project]\ncheck_reminder = true") as server:
        assert len(await reminders(server, WRITE, DONE, DONE, checkReminder=None)) == 1
    async with running_server(tmp_path, config="[project]\ncheck_reminder = false") as server:
        assert await reminders(server, WRITE, DONE) == []


async def test_a_user_who_denied_the_check_is_not_asked_again(tmp_path: Path) -> None:
    project(tmp_path)
    async with running_server(tmp_path) as server:
        session = await server.wire.create(
            scripted(CHECK, WRITE, DONE), workingDirectory=str(project(tmp_path)), **ON
        )
        rules = {"approved": [{"kind": "write"}], "denied": [{"kind": "shell", "argument": "make:*"}]}
        await server.wire.call("session.permissions.configure", {"sessionId": session, "rules": rules})
        events = await server.wire.prompt(session)
    assert [event for event in events if event["data"].get("source") == "check_reminder"] == []


async def test_the_model_gets_the_description_of_the_project_once_per_session(tmp_path: Path) -> None:
    folder = project(tmp_path)
    async with serving(tmp_path) as (server, provider):

        async def first_words(session: str) -> str:
            request = await send_prompt(server.wire, provider, session)
            return request.json["messages"][0]["content"]

        options = {"model": "m", "workingDirectory": str(folder), "projectBrief": True}
        session = await server.wire.create(at(provider), **options)
        first = await first_words(session)
        (folder / "later.py").touch()
        assert await first_words(session) == first, "the prefix stays"
        await server.wire.call("session.destroy", {"sessionId": session})
        await server.wire.call("session.resume", {"sessionId": session, "provider": at(provider), **options})
        assert await first_words(session) == first, "also after the session is resumed"
        assert "\nTests: make test\nLayout: Makefile" in first
        for more in ({"projectBrief": False}, {"projectBrief": None}, {"availableTools": ["ask_user"]}):
            other = await server.wire.create(at(provider), **{**options, **more})
            assert "make test" not in await first_words(other)


async def test_the_description_is_switched_off_in_the_configuration(tmp_path: Path) -> None:
    async with (
        ModelServer(says("Hi")) as provider,
        running_server(tmp_path, config="[project]\nbrief = false") as server,
    ):
        options: JsonObject = {"workingDirectory": str(project(tmp_path)), "projectBrief": True}
        session = await server.wire.create(at(provider), model="m", **options)
        request = await send_prompt(server.wire, provider, session)
    assert "make test" not in request.json["messages"][0]["content"]


CHECKS = (
    *("make test", "cd x && npm test", "PYTHONPATH=. timeout 60 pytest -q", "ls; python app.py", "./gradlew build"),
)
NO_CHECKS = (
    *("", "ls -la", "git diff | head", "cat a.py", "pip install x", "npm ci", "mkdir -p a && touch a/b", "A=1"),
)


def test_a_check_is_a_command_that_runs_something() -> None:
    assert [command for command in CHECKS if not is_check(command)] == []
    assert [command for command in NO_CHECKS if is_check(command)] == []
