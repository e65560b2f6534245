from __future__ import annotations

import os
import re
from pathlib import Path

import anyio
import pytest

from jumpseat.agent.blocks import ToolUseBlock
from jumpseat.tools.builtin.bash import TOOL
from jumpseat.tools.shell import shells as shells_module
from jumpseat.tools.shell.process import OutputBuffer
from jumpseat.tools.shell.shells import Shells
from jumpseat.tools.tool import ToolOutcome
from tests.support.limits import WAIT_S
from tests.tools.session import call, output_until, permission, process_runs, tool_session, until

pytestmark = pytest.mark.anyio


async def test_output_of_both_streams_comes_in_order_with_the_exit_code(tmp_path: Path) -> None:
    async with tool_session(tmp_path) as ctx:
        with anyio.fail_after(WAIT_S):
            outcome = await call(ctx, "bash", command="echo one; echo two >&2; echo three", description="x")
    assert outcome.text == "one\ntwo\nthree\n<exited with exit code 0>"
    assert outcome.ok


async def test_a_failing_command_is_a_successful_call_with_its_exit_code(tmp_path: Path) -> None:
    async with tool_session(tmp_path) as ctx:
        with anyio.fail_after(WAIT_S):
            outcome = await call(ctx, "bash", command="echo no; exit 3")
            assert (outcome.text, outcome.ok) == ("no\n<exited with exit code 3>", True)
            assert (await call(ctx, "bash", command="true")).text == "<exited with exit code 0>"
            assert (await call(ctx, "bash", command="kill -9 $$")).text == "<exited with exit code 137>"
            assert list(ctx.shells) == []


async def test_commands_run_in_the_working_directory_without_input_pager_or_start_up_files(tmp_path: Path) -> None:
    async with tool_session(tmp_path) as ctx:
        ctx.environ()["BASH_ENV"] = str(tmp_path / "start-up")
        (tmp_path / "start-up").write_text("echo start-up file")
        with anyio.fail_after(WAIT_S):
            outcome = await call(ctx, "bash", command="pwd; cat; echo $PAGER $TERM")
    assert outcome.text == f"{tmp_path}\ncat dumb\n<exited with exit code 0>"


async def test_commands_use_no_repository_among_the_files_of_a_project_and_no_cdpath(tmp_path: Path) -> None:
    async with tool_session(tmp_path) as ctx:
        ctx.environ().update({"CDPATH": str(tmp_path / "other"), "GIT_CONFIG_COUNT": "1"})
        ctx.environ().update({"GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "Ada"})
        (tmp_path / "other" / "sub").mkdir(parents=True)
        with anyio.fail_after(WAIT_S):
            await call(ctx, "bash", command="git init -q --bare sub")
            outcome = await call(ctx, "bash", command="git config user.name && cd sub && pwd && git rev-parse HEAD")
    assert outcome.text.startswith(f"Ada\n{tmp_path}/sub\nfatal: cannot use bare repository")


async def test_partial_output_is_the_whole_output_so_far(tmp_path: Path) -> None:
    shown: list[str] = []
    news = anyio.Event()

    def partial(text: str) -> None:
        shown.append(text)
        news.set()

    os.mkfifo(tmp_path / "go")
    async with tool_session(tmp_path) as ctx, anyio.create_task_group() as tasks:
        ctx.partial = partial
        with anyio.fail_after(WAIT_S):
            tasks.start_soon(lambda: call(ctx, "bash", command="echo one; read x < go; echo two"))
            await news.wait()
            assert shown == ["one\n"]
            await anyio.to_thread.run_sync((tmp_path / "go").write_text, "\n")
            await until(lambda: len(shown) > 1)
    assert shown == ["one\n", "one\ntwo\n"]


async def test_a_slow_command_continues_in_the_background_and_can_be_read_to_its_end(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    async with tool_session(tmp_path) as ctx:
        with anyio.fail_after(WAIT_S):
            outcome = await call(ctx, "bash", command="echo one; read x < go; echo two", initial_wait=0.25)
            assert "<still running with shellId: 0; go on with read_bash" in outcome.text
            await output_until(ctx, "0", "one\n<still running with shellId: 0;", outcome.text)
            listed = await call(ctx, "list_bash")
            assert re.match(r"shellId 0 \(running for \d+s\): echo one;", listed.text)
            nothing_new = await call(ctx, "read_bash", shellId="0", delay=0)
            assert nothing_new.text.startswith("<still running")
            await anyio.to_thread.run_sync((tmp_path / "go").write_text, "\n")
            rest = await call(ctx, "read_bash", shellId="0")
            assert rest.text == "two\n<exited with exit code 0>"
            assert (await call(ctx, "list_bash")).text == "No shells."
            again = await call(ctx, "read_bash", shellId="0")
    assert not again.ok
    assert again.text == "There is no shell '0': it never existed, or its end has been reported. Shells: none."


async def test_a_background_command_takes_input_and_end_of_file(tmp_path: Path) -> None:
    async with tool_session(tmp_path) as ctx:
        with anyio.fail_after(WAIT_S):
            started = await call(ctx, "bash", command="read x; echo got $x; cat", mode="async")
            assert "shellId: 0" in started.text
            first = await call(ctx, "write_bash", shellId="0", input="hello", delay=0.25)
            await output_until(ctx, "0", "got hello\n<still running", first.text)
            last = await call(ctx, "write_bash", shellId="0", input="bye", eof=True)
    assert last.text == "bye\n<exited with exit code 0>"


async def test_writing_to_a_command_without_stdin_explains_how_to_get_one(tmp_path: Path) -> None:
    async with tool_session(tmp_path) as ctx:
        with anyio.fail_after(WAIT_S):
            await call(ctx, "bash", command="sleep 60", initial_wait=0)
            outcome = await call(ctx, "write_bash", shellId="0", input="x")
            assert not (await call(ctx, "write_bash", shellId="7", input="x")).ok
    assert outcome.text == "Shell 0 has no stdin. Start the command with mode async to write to it."


async def test_writing_more_than_the_command_reads_does_not_wait_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jumpseat.tools.builtin.write_bash.WRITE_TIMEOUT_S", 0.25)
    async with tool_session(tmp_path) as ctx:
        with anyio.fail_after(WAIT_S):
            await call(ctx, "bash", command="sleep 60", mode="async")
            stuck = await call(ctx, "write_bash", shellId="0", input="x" * 1_000_000)
            await call(ctx, "bash", command="exec <&-; echo closed; sleep 60", mode="async")
            await output_until(ctx, "1", "closed", "")
            closed = await call(ctx, "write_bash", shellId="1", input="x")
    assert stuck.text == "Shell 0 does not read its input. Read its output with read_bash to see why."
    assert closed.text == "Shell 1 has closed its input. Read its output with read_bash to see why."


@pytest.mark.thorough
async def test_stop_ends_grandchildren_that_ignore_sigterm(tmp_path: Path) -> None:
    command = "echo started; (trap '' TERM; echo $BASHPID > pid; while :; do sleep 60; done) & wait"
    async with tool_session(tmp_path) as ctx:
        with anyio.fail_after(WAIT_S):
            await call(ctx, "bash", command=command, mode="async")
            pid = await _pid(tmp_path)
            assert process_runs(pid)
            outcome = await call(ctx, "stop_bash", shellId="0")
            await until(lambda: not process_runs(pid))
            assert (await call(ctx, "list_bash")).text == "No shells."
            assert not (await call(ctx, "stop_bash", shellId="0")).ok
    assert outcome.text == "started\n<exited with exit code 143>\n<stopped shellId: 0>"


async def test_a_command_can_clean_up_when_it_is_stopped(tmp_path: Path) -> None:
    async with tool_session(tmp_path) as ctx:
        with anyio.fail_after(WAIT_S):
            # A busy loop instead of `read`: bash handles a signal that arrives just before `read` only after it.
            command = "trap 'echo tidy; exit 4' TERM; echo $$ > pid; while :; do :; done"
            await call(ctx, "bash", command=command, mode="async")
            await _pid(tmp_path)
            outcome = await call(ctx, "stop_bash", shellId="0")
    assert outcome.text == "tidy\n<exited with exit code 4>\n<stopped shellId: 0>"


async def test_cancelling_the_call_kills_the_whole_group(tmp_path: Path) -> None:
    async with tool_session(tmp_path) as ctx:
        with anyio.fail_after(WAIT_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: call(ctx, "bash", command="sleep 60 & echo $! > pid; wait"))
                await _pid(tmp_path)
                tasks.cancel_scope.cancel()
            pid = await _pid(tmp_path)
            await until(lambda: not process_runs(pid))
            assert list(ctx.shells) == []


async def test_a_background_child_does_not_block_the_call_and_ends_with_the_session(tmp_path: Path) -> None:
    async with tool_session(tmp_path) as ctx:
        with anyio.fail_after(WAIT_S):
            for redirection in ("", ">/dev/null 2>&1"):
                (tmp_path / "pid").unlink(missing_ok=True)
                command = f"sleep 60 {redirection} & echo $! > pid; echo started"
                outcome = await call(ctx, "bash", command=command)
                assert outcome.text == "started\n<exited with exit code 0>"
                assert process_runs(await _pid(tmp_path))
            pid = await _pid(tmp_path)
            listed = await call(ctx, "list_bash")
            assert listed.text.count("(exited with exit code 0, background processes still running)") == 2
            await ctx.shells.close()
            await until(lambda: not process_runs(pid))
            refused = await call(ctx, "bash", command="true")
    assert refused.text == "The session is closing: no new commands can be started."


async def test_cancelling_the_task_group_of_the_session_kills_everything(tmp_path: Path) -> None:
    environ = dict(os.environ)
    with anyio.fail_after(WAIT_S):
        async with anyio.create_task_group() as tasks:
            shells = Shells(tasks)
            command = "sleep 60 >/dev/null 2>&1 & echo $! > pid"
            await (await shells.start(command, cwd=tmp_path, environ=environ)).wait()
            assert process_runs(await _pid(tmp_path))
            tasks.cancel_scope.cancel()
        pid = await _pid(tmp_path)
        await until(lambda: not process_runs(pid))


async def test_no_descriptor_stays_open_after_a_command(tmp_path: Path) -> None:
    async with tool_session(tmp_path) as ctx:
        with anyio.fail_after(WAIT_S):
            await call(ctx, "bash", command="true")
            before = os.listdir("/proc/self/fd")
            for _ in range(3):
                await call(ctx, "bash", command="cat", mode="async")
                shell = next(iter(ctx.shells))
                await call(ctx, "stop_bash", shellId=shell.id)
            ctx.cwd = tmp_path / "missing"
            missing = await call(ctx, "bash", command="true", mode="async")
    assert len(os.listdir("/proc/self/fd")) <= len(before)
    assert missing.text == f"The command could not be started: No such file or directory ({tmp_path / 'missing'})."


async def test_commands_that_cannot_be_started_are_failures(tmp_path: Path) -> None:
    async with tool_session(tmp_path) as ctx:
        with anyio.fail_after(WAIT_S):
            nul = await call(ctx, "bash", command="echo \0")
            # Refused before anybody is asked.
            too_long = await TOOL.prepare(ctx, ToolUseBlock("c1", "bash", "", {"command": "x" * 3_000_000}))
    assert nul.text == "The command contains a NUL character. Remove it and try again."
    assert isinstance(too_long, ToolOutcome)
    assert "command: expected at most 131071 bytes" in too_long.text


async def test_extreme_waits_are_harmless(tmp_path: Path) -> None:
    async with tool_session(tmp_path) as ctx:
        with anyio.fail_after(WAIT_S):
            for wait in (-5, float("nan")):
                outcome = await call(ctx, "bash", command="sleep 60", initial_wait=wait)
                assert outcome.text.startswith("<still running")
            assert (await call(ctx, "bash", command="echo x", initial_wait=1e300)).text.startswith("x\n")


async def test_the_oldest_unread_commands_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shells_module, "FINISHED_KEPT", 2)
    async with tool_session(tmp_path) as ctx:
        with anyio.fail_after(WAIT_S):
            for _ in range(4):
                shell = await ctx.shells.start("true", cwd=tmp_path, environ=ctx.environ())
                await shell.wait()
            await ctx.shells.start("true", cwd=tmp_path, environ=ctx.environ())
            assert [shell.id for shell in ctx.shells] == ["2", "3", "4"]


async def test_the_permission_request_describes_the_command(tmp_path: Path) -> None:
    async with tool_session(tmp_path) as ctx:
        request = permission(ctx, "bash", command="echo one && echo two", description="Say it")
        typed = permission(ctx, "write_bash", shellId="0", input="rm -rf /")
        assert permission(ctx, "read_bash", shellId="0") is None
    assert request is not None
    assert request.kind == "shell"
    assert request.intention == "Say it"
    assert request.command_segments is not None
    assert [segment.full_command_text for segment in request.command_segments] == ["echo one", "echo two"]
    assert [(c.identifier, c.read_only) for c in request.commands] == [("echo", True)]
    assert request.can_offer_session_approval
    assert typed is not None
    assert typed.kind == "shell"
    assert (typed.full_command_text, typed.can_offer_session_approval) == ("rm -rf /", False)


async def test_the_output_buffer_keeps_the_newest_and_never_splits_a_character() -> None:
    buffer = OutputBuffer(limit=8)
    buffer.append("ab€".encode()[:4])
    assert buffer.take(final=False) == "ab"
    buffer.append("€".encode()[2:])
    assert buffer.take(final=False) == "€"
    assert buffer.unread == 0
    buffer.append(b"0123456789")
    assert buffer.text(final=False) == "[7 bytes of earlier output dropped]\n23456789"
    assert buffer.text(3, final=False) == "789"
    assert buffer.take(final=True) == "[2 bytes of earlier output dropped]\n23456789"
    buffer.append(b"\xff")
    assert buffer.take(final=True) == "�"


async def _pid(directory: Path) -> int:
    """Return the process id that a command has written to the file ``pid``."""
    file = directory / "pid"
    await until(lambda: file.exists() and file.read_text().endswith("\n"))
    return int(file.read_text())
