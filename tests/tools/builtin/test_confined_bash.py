"""The shell tools in a sandbox with a PID namespace: the same life of commands as without one."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from jumpseat.tools.tool import ToolContext
from jumpseat_protocol.permissions import ShellPermission
from tests.sandbox.parts import MECHANISMS, Confining, ready_namespaces
from tests.support.limits import WAIT_S
from tests.tools.session import call, output_until, permission, tool_session, until

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif("bubblewrap" not in MECHANISMS, reason="needs bubblewrap"),
]


@asynccontextmanager
async def confined_session(tmp_path: Path) -> AsyncGenerator[ToolContext, None]:
    project = tmp_path / "project"
    session = Confining(project, tmp_path / "home", mechanism=MECHANISMS["bubblewrap"])
    with anyio.fail_after(WAIT_S):
        async with tool_session(project, sandbox=session.sandbox) as ctx:
            yield ctx


def inside(project: Path) -> list[int]:
    """Return the processes that run in a namespace of their own in ``project``, except for those that wait."""
    found: list[int] = []
    others = {os.readlink("/proc/self/ns/pid"), *ready_namespaces(project)}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            own = os.readlink(entry / "ns" / "pid") not in others
            if own and os.readlink(entry / "cwd") == str(project):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


async def test_the_exit_code_is_that_of_the_command(tmp_path: Path) -> None:
    async with confined_session(tmp_path) as ctx:
        assert (await call(ctx, "bash", command="echo no; exit 3")).text == "no\n<exited with exit code 3>"
        assert (await call(ctx, "bash", command="true")).text == "<exited with exit code 0>"
        assert (await call(ctx, "bash", command="kill -9 $$")).text == "<exited with exit code 137>"
        assert (await call(ctx, "bash", command="trap 'echo int' INT; kill -INT $$")).text.startswith("int\n")
        assert list(ctx.shells) == []


async def test_a_background_process_lasts_until_the_session_ends(tmp_path: Path) -> None:
    async with confined_session(tmp_path) as ctx:
        outcome = await call(ctx, "bash", command="sleep 1000 & setsid sleep 1000 & echo started")
        assert outcome.text == "started\n<exited with exit code 0>"
        assert "background processes still running" in (await call(ctx, "list_bash")).text
        assert len(inside(ctx.cwd)) >= 2
    await until(lambda: not inside(ctx.cwd))


async def test_stopping_gives_the_command_time_to_clean_up(tmp_path: Path) -> None:
    async with confined_session(tmp_path) as ctx:
        line = "trap 'echo cleaned > cleaned; exit 5' TERM; touch ready; while :; do sleep 0.01; done"
        await call(ctx, "bash", command=line, mode="async")
        await until((ctx.cwd / "ready").exists)
        outcome = await call(ctx, "stop_bash", shellId="0")
        assert "exit code 5" in outcome.text
        assert (ctx.cwd / "cleaned").exists()
        await until(lambda: not inside(ctx.cwd))


async def test_stopping_ends_processes_that_ignore_signals(tmp_path: Path) -> None:
    async with confined_session(tmp_path) as ctx:
        await call(ctx, "bash", command="trap '' TERM; touch ready; while :; do sleep 1; done", mode="async")
        await until((ctx.cwd / "ready").exists)
        await call(ctx, "stop_bash", shellId="0")
        await until(lambda: not inside(ctx.cwd))


async def test_cancelling_the_call_ends_the_sandbox(tmp_path: Path) -> None:
    async with confined_session(tmp_path) as ctx:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: call(ctx, "bash", command="setsid sleep 1000 & touch ready; sleep 1000"))
            await until((ctx.cwd / "ready").exists)
            tasks.cancel_scope.cancel()
        await until(lambda: not inside(ctx.cwd))


async def test_input_reaches_an_interactive_command_in_the_sandbox(tmp_path: Path) -> None:
    async with confined_session(tmp_path) as ctx:
        await call(ctx, "bash", command="bash", mode="async")
        written = await call(ctx, "write_bash", shellId="0", input="echo $((6 * 7))", delay=0.3)
        await output_until(ctx, "0", "42", written.text)
        await call(
            ctx, "write_bash", shellId="0", input="touch /etc/x; exec 0<&-; touch closed; sleep 1000", delay=0
        )
        await until((ctx.cwd / "closed").exists)
        assert "has closed its input" in (await call(ctx, "write_bash", shellId="0", input="more")).text


async def test_the_model_learns_what_the_sandbox_refused_and_how_to_ask(tmp_path: Path) -> None:
    async with confined_session(tmp_path) as ctx:
        text = (await call(ctx, "bash", command="touch /usr/share/x")).text
        assert "<the sandbox refused writing to /usr/share/x>" in text
        assert "`unsandboxed`" in text
        await call(ctx, "bash", command="true")
        request = permission(ctx, "bash", command="id", unsandboxed="it needs the network")
        assert isinstance(request, ShellPermission)
        assert (request.sandboxed, request.request_sandbox_bypass) == (False, True)
        assert request.request_sandbox_bypass_reason == "it needs the network"
        inner = permission(ctx, "bash", command="id")
        assert isinstance(inner, ShellPermission)
        assert (inner.sandboxed, inner.request_sandbox_bypass) == (True, None)


async def test_the_model_learns_which_files_were_moved_away(tmp_path: Path) -> None:
    async with confined_session(tmp_path) as ctx:
        text = (await call(ctx, "bash", command="mkdir .vscode; echo {} > .vscode/tasks.json")).text
        assert f"<{ctx.cwd}/.vscode was moved to " in text
        assert not (ctx.cwd / ".vscode").exists()


async def test_a_missing_working_directory_is_a_failed_call(tmp_path: Path) -> None:
    async with confined_session(tmp_path) as ctx:
        ctx.cwd.rmdir()
        outcome = await call(ctx, "bash", command="true")
        assert not outcome.ok
        assert "could not be started" in outcome.text
