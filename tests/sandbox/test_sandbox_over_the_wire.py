"""The sandbox of a session over the wire: options, events, permission requests and modes."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from tests.agent.permissions.test_permissions_over_the_wire import (
    DONE,
    ONCE,
    REJECT,
    bash,
    data_of,
    open_session,
    outcomes,
    run,
)
from tests.sandbox.parts import MECHANISMS, git, members, ready_namespaces
from tests.support.server import JsonObject, calls, running_server
from tests.tools.session import until

pytestmark = [pytest.mark.anyio, pytest.mark.skipif("bubblewrap" not in MECHANISMS, reason="needs bubblewrap")]

CONFINED: dict[str, Any] = {"sandboxConfig": {"enabled": True}}
FOR_SESSION = {"kind": "approve-for-session"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


async def test_a_session_chooses_its_sandbox_and_events_tell_about_it(
    tmp_path: Path, project: Path, outside: Path
) -> None:
    file = outside / "file"
    async with running_server(tmp_path) as server:
        session = await open_session(server, project, bash(f"touch inside {file}"), DONE, **CONFINED)
        events = await run(server.wire, session, ONCE)
        (asked,) = data_of(events, "permission.requested")
        assert asked["permissionRequest"]["sandboxed"] is True
        (completed,) = data_of(events, "tool.execution_complete")
        assert completed["sandboxed"] is True
        assert "<the sandbox refused writing to" in completed["result"]["content"]
        assert (project / "inside").exists()
        assert not file.exists()
        second = await open_session(server, project, DONE, **CONFINED)
        (start,) = data_of(server.wire.events(second), "session.start")
        assert start["sandbox"] == {"mode": "require", "mechanism": "bubblewrap"}


async def test_in_the_mode_sandboxed_only_what_wants_out_is_asked_about(
    tmp_path: Path, project: Path, outside: Path
) -> None:
    file = outside / "file"
    rules = '[permissions]\ndeny = ["shell(rm)"]\nask = ["shell(git push)"]\n'
    leaving = bash(f"echo out > {file}")
    leaving["tool_calls"][0]["arguments"]["unsandboxed"] = "the file is outside"
    turns = [bash("make all; python3 -c 1; touch x"), bash("rm x"), bash("git push"), leaving, DONE]
    async with running_server(tmp_path, config=rules) as server:
        session = await open_session(server, project, *turns, **CONFINED)
        await server.wire.call("session.permissions.setMode", {"sessionId": session, "mode": "sandboxed"})
        events = await run(server.wire, session, ONCE, ONCE)
        assert outcomes(events) == ["ok", "denied", "ok", "ok"]
        assert (project / "x").exists()
        assert file.read_text() == "out\n"
        request = data_of(events, "permission.requested")[1]["permissionRequest"]
        assert (request["requestSandboxBypass"], request["sandboxed"]) == (True, False)
        assert request["requestSandboxBypassReason"] == "the file is outside"
        assert request["warning"] == "The command is to run outside of the sandbox: the file is outside"
        assert data_of(events, "tool.execution_complete")[3]["sandboxed"] is False


async def test_approval_of_a_confined_command_does_not_let_it_out(tmp_path: Path, project: Path) -> None:
    def leaving(line: str) -> JsonObject:
        turn = bash(line)
        turn["tool_calls"][0]["arguments"]["unsandboxed"] = "please"
        return turn

    turns = [
        bash("id -u"),
        bash("id -u"),
        leaving("id -u"),
        leaving("id -u"),
        leaving("id -g"),
        bash("id -g"),
        DONE,
    ]
    async with running_server(tmp_path) as server:
        session = await open_session(server, project, *turns, **CONFINED)
        # Questions: once for good inside, once for good outside, for other options outside, and none inside again.
        events = await run(server.wire, session, FOR_SESSION, FOR_SESSION, ONCE)
        assert outcomes(events) == ["ok"] * 6


async def test_the_rule_sandboxed_and_the_configuration_hold_for_all_sessions(
    tmp_path: Path, project: Path, outside: Path
) -> None:
    file = outside / "file"
    config = '[sandbox]\nmode = "require"\nnetwork = "all"\n[permissions]\nallow = ["sandboxed"]\n'
    async with running_server(tmp_path, config=config) as server:
        line = f"ls /sys/class/net | wc -l; touch {file} || echo refused"
        session = await open_session(server, project, bash(line), DONE, sandboxConfig={"enabled": False})
        events = await run(server.wire, session)
        (completed,) = data_of(events, "tool.execution_complete")
        assert "refused" in completed["result"]["content"]
        assert completed["sandboxed"] is True


async def test_commands_that_no_sandbox_can_serve_run_outside_once_they_are_approved(
    tmp_path: Path, project: Path
) -> None:
    # The last one shows the environments of all programs.
    turns = [bash("ps"), bash("ps"), bash("ps e"), DONE]
    async with running_server(tmp_path, config='[permissions]\nallow = ["sandboxed"]\n') as server:
        session = await open_session(server, project, *turns)
        events = await run(server.wire, session, FOR_SESSION, ONCE)
        request = data_of(events, "permission.requested")[0]["permissionRequest"]
        assert request["sandboxed"] is False
        assert request["warning"].startswith("The command is to run outside of the sandbox: ")
        assert [data["sandboxed"] for data in data_of(events, "tool.execution_complete")] == [False] * 3
        required = await open_session(server, project, bash("ps"), DONE, **CONFINED)
        (completed,) = data_of(await run(server.wire, required), "tool.execution_complete")
        assert completed["sandboxed"] is True


async def test_policies_of_a_session_open_and_close_paths(tmp_path: Path, project: Path) -> None:
    extra, closed = project / "extra", project / "closed"
    for folder in (extra, closed):
        folder.mkdir()
        (folder / "file").write_text("text\n")
    policy = {"filesystem": {"readwritePaths": [], "readonlyPaths": [str(extra)], "deniedPaths": [str(closed)]}}
    async with running_server(tmp_path) as server:
        options: dict[str, Any] = {"sandboxConfig": {"enabled": True, "userPolicy": policy}}
        session = await open_session(server, project, bash("cat */file; touch extra/x; touch y"), DONE, **options)
        events = await run(server.wire, session, ONCE)
        content = data_of(events, "tool.execution_complete")[0]["result"]["content"]
        assert content.count("text") == 1
        assert (project / "y").exists()
        assert not (extra / "x").exists()


async def test_without_a_sandbox_approvals_cover_only_the_approved_line(tmp_path: Path, project: Path) -> None:
    turns = [bash("ls"), bash("ls"), bash("ls -a"), DONE]
    async with running_server(tmp_path, config='[sandbox]\nmode = "auto"\nmechanisms = []\n') as server:
        session = await open_session(server, project, *turns)
        events = await run(server.wire, session, FOR_SESSION, REJECT)
        assert outcomes(events)[:2] == ["ok", "ok"]
        warnings = [data for data in data_of(events, "session.warning") if data["warningType"] == "sandbox"]
        assert len(warnings) == 1
        assert data_of(events, "permission.requested")[0]["permissionRequest"]["sandboxed"] is False
        # Nobody is told that commands are confined.
        mode = {"sessionId": session, "mode": "sandboxed"}
        answer = await server.wire.response(await server.wire.ask("session.permissions.setMode", mode))
        assert "'sandboxed' is not available on this system: no sandbox works" in answer["error"]["message"]


@pytest.mark.skipif("landlock" not in MECHANISMS, reason="needs Landlock")
async def test_landlock_confines_and_is_no_reason_to_ask_less(tmp_path: Path, project: Path, outside: Path) -> None:
    turns = [bash(f"touch inside {outside}/file"), bash("touch inside"), DONE]
    config = '[sandbox]\nmechanisms = ["landlock"]\n[permissions]\nallow = ["sandboxed"]\n'
    async with running_server(tmp_path, config=config) as server:
        session = await open_session(server, project, *turns)
        mode = {"sessionId": session, "mode": "sandboxed"}
        answer = await server.wire.response(await server.wire.ask("session.permissions.setMode", mode))
        assert "'sandboxed' is not available on this system: commands can" in answer["error"]["message"]
        events = await run(server.wire, session, FOR_SESSION, REJECT)
        assert outcomes(events) == ["ok", "denied"]
        assert data_of(events, "permission.requested")[0]["permissionRequest"]["sandboxed"] is False
        assert data_of(events, "tool.execution_complete")[0]["sandboxed"] is True
        assert (project / "inside").exists()
        assert not (outside / "file").exists()
        (warning,) = [data for data in data_of(events, "session.warning") if data["warningType"] == "sandbox"]
        assert warning["message"].startswith("Commands are confined by landlock only: ")


async def test_a_required_sandbox_that_is_missing_runs_nothing(tmp_path: Path, project: Path) -> None:
    async with running_server(tmp_path, config='[sandbox]\nmode = "auto"\nmechanisms = []\n') as server:
        session = await open_session(server, project, bash("touch x"), DONE, **CONFINED)
        await run(server.wire, session, ONCE)
        assert not (project / "x").exists()


@pytest.mark.parametrize("how", ["session.destroy", "SIGKILL"])
async def test_background_processes_end_with_the_session_and_with_a_killed_server(
    tmp_path: Path, project: Path, how: str
) -> None:
    line = "(env -i setsid sleep 1000 &); readlink /proc/self/ns/pid > namespace"
    async with running_server(tmp_path) as server:
        session = await open_session(server, project, bash(line), bash("true"), DONE, **CONFINED)
        await run(server.wire, session, ONCE, ONCE)
        namespace = (project / "namespace").read_text().strip()
        # The first process of the namespace, and the one in the background.
        await until(lambda: len(members(namespace)) == 2)
        # The sandbox that waits for the next command.
        await until(lambda: bool(ready_namespaces(project)))
        ready = ready_namespaces(project)
        if how == "SIGKILL":
            server.expect_exit = -signal.SIGKILL
            server.signal(signal.SIGKILL)
            await server.exit_code()
        else:
            await server.wire.call(how, {"sessionId": session})
        await until(lambda: not any(map(members, [namespace, *ready])))


async def test_no_command_leaves_the_sandbox_while_others_run_there(tmp_path: Path, project: Path) -> None:
    background = bash("echo started; sleep 100")
    background["tool_calls"][0]["arguments"]["mode"] = "async"
    turns = [background, bash("git push"), calls("stop_bash", "c3", shellId="0"), bash("git push"), DONE]
    async with running_server(tmp_path) as server:
        session = await open_session(server, project, *turns)
        # Only the first and the last of the commands are asked about.
        events = await run(server.wire, session, ONCE, ONCE)
    _, refused, _, pushed = data_of(events, "tool.execution_complete")
    assert "The command was not started: it runs outside of the sandbox" in str(refused)
    assert (pushed["success"], pushed["sandboxed"]) == (True, False)


async def test_no_command_leaves_the_sandbox_while_a_child_of_one_that_has_ended_runs_there(
    tmp_path: Path, project: Path
) -> None:
    turns = [bash("(sleep 100; touch late) & echo started"), bash("git push"), DONE]
    async with running_server(tmp_path) as server:
        session = await open_session(server, project, *turns)
        events = await run(server.wire, session, ONCE)
    _, refused = data_of(events, "tool.execution_complete")
    assert "The command was not started: it runs outside of the sandbox" in str(refused)


async def test_what_a_child_leaves_after_its_command_has_ended_is_moved_away(tmp_path: Path, project: Path) -> None:
    late = "until [ -e go ]; do sleep 0.1; done; mkdir .vscode; touch .vscode/tasks.json written"
    async with running_server(tmp_path) as server:
        session = await open_session(server, project, bash(f"({late}) & echo started"), DONE)
        await run(server.wire, session, ONCE)
        (project / "go").touch()
        await until((project / "written").exists)
        await until(lambda: not (project / ".vscode" / "tasks.json").exists())


async def test_git_starts_no_program_of_a_repository_to_look_at_it_outside(tmp_path: Path, project: Path) -> None:
    ran = tmp_path / "ran"
    git(project, "init", "-q")
    git(project, "config", "core.fsmonitor", f"touch {ran}; false")
    turns = [bash("git status; git log --oneline -1; git add ."), DONE]
    rules = '[permissions]\nallow = ["shell(git status)", "shell(git log)", "shell(git add)"]\n'
    async with running_server(tmp_path, config=rules) as server:
        session = await open_session(server, project, *turns, sandboxConfig={"enabled": False})
        await run(server.wire, session)
    assert not ran.exists()


async def test_a_question_about_a_command_outside_names_the_hooks_that_git_runs(
    tmp_path: Path, project: Path
) -> None:
    git(project, "init", "-q")
    sub = project / "sub"
    git(project, "init", "-q", "sub")
    git(project, "config", "core.hooksPath", ".husky/_")
    for path in (".husky/_/pre-push", ".husky/_/pre-commit", ".husky/pre-push", "sub/.git/hooks/pre-push"):
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text("#!/bin/sh\n# made by pre-commit\n")
        (project / path).chmod(0o755)
    (sub / ".pre-commit-config.yaml").write_text("")
    lines = ("git push 2>&1 | tail", "git fetch", "cd sub && git push", "git -C sub push")
    # The question would name the settings of a folder that is not trusted as well.
    async with running_server(tmp_path, config=f"trusted_folders = ['{project}']\n") as server:
        session = await open_session(server, project, *map(bash, lines), DONE)
        events = await run(server.wire, session, *([ONCE] * len(lines)))
    asked = [data["permissionRequest"]["warning"] for data in data_of(events, "permission.requested")]
    told = [text.partition("code of the project: ")[2] for text in asked]
    of_sub = "sub/.git/hooks/pre-push, sub/.pre-commit-config.yaml"
    assert told == [".husky/pre-push", "", f".husky/pre-push, {of_sub}", f".husky/pre-push, {of_sub}"]
