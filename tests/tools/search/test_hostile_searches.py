"""Patterns that take hours, files with one endless line, and servers that are killed during a search."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from jumpseat.tools.search import engine
from tests.support.limits import WAIT_S
from tests.support.server import RunningServer, calls, running_server, scripted, wait_until_gone
from tests.tools.session import call, tool_session, until

pytestmark = pytest.mark.anyio

NO_PROGRAMS = "/nonexistent"
ENDLESS: list[tuple[str, dict[str, Any]]] = [
    ("grep", {"pattern": "(a+)+$", "path": "hostile"}),
    ("glob", {"pattern": f"{'*a' * 20}b"}),
]


def _tree(root: Path) -> None:
    (root / "hostile").write_text(f"{'a' * 60}!\n")
    (root / ("a" * 100)).touch()


def _children(pid: int) -> list[int]:
    children: list[int] = []
    for tasks in Path(f"/proc/{pid}/task").iterdir():
        children += map(int, (tasks / "children").read_text().split())
    return children


def _told(pid: int, what: str) -> bytes:
    return Path(f"/proc/{pid}/{what}").read_bytes()


def _searches(pid: int) -> list[int]:
    """Return the children that search; another child watches for the end of the server."""
    return [child for child in _children(pid) if b"python_engine" in _told(child, "cmdline")]


async def _searching(server: RunningServer, tool: str, arguments: dict[str, Any]) -> tuple[str, int]:
    """Start an endless search; yields the session and the process that runs the search."""
    script = scripted(calls(tool, **arguments), {"text": "done"})
    session = await server.wire.create(script, permissionMode="allow-all", requestPermission=False)
    await server.wire.call("session.send", {"sessionId": session, "prompt": "go"})
    await server.wire.event("tool.execution_start", session=session)
    # A process that was just forked still has the command line of the server.
    while not (found := _searches(server.process.pid)):
        await server.wire.check_alive()
    return session, found[0]


@pytest.mark.parametrize(("tool", "arguments"), ENDLESS)
async def test_the_server_answers_during_an_endless_search_and_abort_ends_its_process(
    tmp_path: Path, tool: str, arguments: dict[str, Any]
) -> None:
    _tree(tmp_path)
    async with running_server(tmp_path, args=["--yolo"], env={"PATH": NO_PROGRAMS}) as server:
        session, pid = await _searching(server, tool, arguments)
        for _ in range(100):
            await server.wire.check_alive()
        assert _searches(server.process.pid) == [pid]
        await server.wire.call("session.abort", {"sessionId": session})
        completion = await server.wire.event("tool.execution_complete", session=session)
        assert not completion["data"]["success"]
        await wait_until_gone(pid)
        await server.wire.event("session.idle", session=session)
        assert _searches(server.process.pid) == []


async def test_an_endless_search_ends_with_its_server(tmp_path: Path) -> None:
    _tree(tmp_path)
    async with running_server(tmp_path, args=["--yolo"], env={"PATH": NO_PROGRAMS}) as server:
        _session, pid = await _searching(server, *ENDLESS[0])
    await wait_until_gone(pid)


async def test_an_endless_search_does_not_outlive_a_server_that_is_killed(tmp_path: Path) -> None:
    _tree(tmp_path)
    async with running_server(tmp_path, args=["--yolo"], env={"PATH": NO_PROGRAMS}) as server:
        _session, pid = await _searching(server, *ENDLESS[0])
        await server.kill()
        await wait_until_gone(pid)


async def test_the_search_process_gets_no_secret(tmp_path: Path) -> None:
    _tree(tmp_path)
    env = {"PATH": NO_PROGRAMS, "OPENAI_API_KEY": "s3cret", "PYTHONSTARTUP": "x"}
    async with running_server(tmp_path, args=["--yolo"], env=env) as server:
        _session, pid = await _searching(server, *ENDLESS[0])
        environ, command = _told(pid, "environ"), _told(pid, "cmdline")
    names = {entry.partition(b"=")[0] for entry in environ.split(b"\0") if entry}
    assert names <= {b"LD_LIBRARY_PATH"}
    assert b"(a+)+$" not in command


# --- texts for the model ------------------------------------------------------------------------------------------

ADVICE = "Use a simpler pattern (without nested repetition), or a narrower path or glob."


async def test_a_search_that_times_out_returns_its_hits_as_partial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "TIME_LIMIT_S", 2)
    _tree(tmp_path)
    (tmp_path / "a").write_text("aaa\n")
    (tmp_path / "hostile").write_text(f"aa\n{'a' * 60}!\n")
    (tmp_path / "no").mkdir()
    (tmp_path / "no" / "hostile").write_text(f"{'a' * 60}!\n")
    endless = f"{'*a' * 20}b"
    searches: list[tuple[str, dict[str, Any]]] = [
        ("grep", {"pattern": "(a+)+$", "output_mode": "content"}),
        ("grep", {"pattern": "(a+)+$", "output_mode": "count", "path": "hostile"}),
        ("grep", {"pattern": "(a+)+$", "path": "no"}),
        ("glob", {"pattern": f"{{a,{endless}}}"}),
        ("glob", {"pattern": endless}),
    ]
    answers: dict[int, tuple[str, bool]] = {}
    async with tool_session(tmp_path, path=NO_PROGRAMS) as ctx, anyio.create_task_group() as tasks:

        async def run(index: int) -> None:
            tool, arguments = searches[index]
            outcome = await call(ctx, tool, **arguments)
            answers[index] = (outcome.text, outcome.ok)

        for index in range(len(searches)):
            tasks.start_soon(run, index)
    cut = f"the search was stopped after 2 seconds. {ADVICE}"
    assert answers == {
        0: (f"./a:aaa\n./hostile:aa\n[Incomplete: {cut}]", True),
        1: (f"hostile:1\n[Incomplete: {cut}]", True),
        2: (cut, False),
        3: (f"./a\n[Incomplete: {cut}]", True),
        4: (cut, False),
    }


async def test_a_pattern_that_uses_all_memory_fails_alone(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x\n")
    (tmp_path / "big").write_text("ab" * 5_000_000)
    async with tool_session(tmp_path, path=NO_PROGRAMS) as ctx:
        outcome = await call(ctx, "grep", pattern="(?:(a)|(b)|(?=(c)))*x|^x")
    assert outcome.text == f"./a\n[Incomplete: the search needed too much memory. {ADVICE}]"


@pytest.mark.parametrize("ending", ["exit 3", "kill -9 $$"])
async def test_the_crash_of_an_engine_is_an_error_and_not_an_empty_result(tmp_path: Path, ending: str) -> None:
    rg = tmp_path / "bin" / "rg"
    rg.parent.mkdir()
    rg.write_text(f"#!/bin/sh\n{ending}\n")
    rg.chmod(0o755)
    async with tool_session(tmp_path, path=str(rg.parent)) as ctx:
        outcome = await call(ctx, "grep", pattern="x")
    assert (outcome.text, outcome.ok) == (f"the search ended unexpectedly. {ADVICE}", False)


async def test_a_script_around_ripgrep_is_ended_with_its_child_processes(tmp_path: Path) -> None:
    rg = tmp_path / "bin" / "rg"
    rg.parent.mkdir()
    rg.write_text(
        f"#!/bin/sh\n/bin/sleep 60 & echo $! > {tmp_path}/new; /bin/mv {tmp_path}/new {tmp_path}/pid; wait\n"
    )
    rg.chmod(0o755)
    with anyio.fail_after(WAIT_S):
        async with tool_session(tmp_path, path=str(rg.parent)) as ctx, anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: call(ctx, "grep", pattern="x"))
            await until((tmp_path / "pid").exists)
            tasks.cancel_scope.cancel()
        await wait_until_gone(int((tmp_path / "pid").read_text()))


async def test_a_search_that_cannot_start_reports_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "/nonexistent/python")
    async with tool_session(tmp_path, path=NO_PROGRAMS) as ctx:
        for tool in ("grep", "glob"):
            outcome = await call(ctx, tool, pattern="x")
            assert outcome.text == (
                "The search could not be started: No such file or directory (/nonexistent/python)."
            )
            assert not outcome.ok


@pytest.mark.parametrize("path", [NO_PROGRAMS, os.environ["PATH"]])
async def test_endless_lines_and_hits_are_truncated(
    tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "RECORD_LIMIT_BYTES", 100_000)
    monkeypatch.setattr(engine, "HITS_LIMIT", (1000, engine.HITS_LIMIT[1]))
    (tmp_path / "line").write_text(f"first\n{'ab' * 100_000}\nlast\n")
    (tmp_path / "lines").write_text("\n" * 5_000)
    (tmp_path / "binary").write_bytes(b"\n" * 1000 + b"\0")
    async with tool_session(tmp_path, path=path) as ctx:
        line = await call(
            ctx, "grep", pattern="a|last", output_mode="content", path="line", **{"-n": True, "-B": 1}
        )
        listed = await call(ctx, "grep", pattern="ab")
        counted = await call(ctx, "grep", pattern="", output_mode="count")
        lines = await call(ctx, "grep", pattern="", output_mode="content", path="lines")
    assert line.text == "line-1-first\n--\nline:[a line too long to show]\n--\nline:3:last"
    assert listed.text == "./line"
    assert counted.text == "./line:3\n./lines:5000"
    assert lines.text.startswith("lines:\nlines:\n")
    assert lines.text.endswith("[Stopped here: too many matches. Use a narrower pattern, path or glob.]")
