"""No process that descends from the server outlives it or its session, whatever ends the server."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import anyio
import pytest

from tests.support.cases import all_cases
from tests.support.mcp_servers import status, stdio
from tests.support.server import (
    JsonObject,
    RunningServer,
    calls,
    running_server,
    scripted,
    wait_until_gone,
)

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc"),
]

# A server that is started with an ignored SIGHUP, as below nohup, goes on: the tests may run so themselves.
HANG_UP: Final = () if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN else (signal.SIGHUP,)
ENDS: Final = ("stdin", "shutdown", signal.SIGTERM, signal.SIGINT, *HANG_UP, signal.SIGKILL)

UNCONFINED: Final = "[sandbox]\nmode = 'off'\n"
"""Confined commands have process ids of their own, and cannot outlive bubblewrap."""

DAEMON: Final = "echo $BASHPID >> {pids}; exec sleep 1000"
"""A program of its own session, whose parent has ended."""

LEAVING: Final = (
    "({start} > /dev/null 2>&1 &); while [ $(cat {pids} 2> /dev/null | wc -l) -lt {count} ]; do sleep 0.01; done"
)


def leaving(pids: Path, count: int) -> str:
    """Return a command that starts a daemon, and ends when the file ``pids`` names ``count`` daemons."""
    daemon = DAEMON.format(pids=shlex.quote(str(pids)))
    start = f"setsid setsid bash -c {shlex.quote(daemon)}"
    return LEAVING.format(start=start, pids=shlex.quote(str(pids)), count=count)


async def start_everything(server: RunningServer, folder: Path) -> list[int]:
    """Return the ids of processes that two commands, a tool and an MCP server have started."""
    pids = folder / "pids"
    turns = (
        calls("bash", "call-1", command=leaving(pids, 1)),
        calls(
            "bash",
            "call-2",
            command=f"{leaving(pids, 2)}; echo $$ >> {pids}; sleep 1000",
            mode="async",
            detach=True,
        ),
        calls("bash", "call-3", command=f"while [ $(wc -l < {pids}) -lt 3 ]; do sleep 0.01; done"),
        calls("daemon", "call-4"),
        {"text": "done"},
    )
    served = stdio()["command"]
    line = f"{leaving(folder / 'mcp', 1)}; echo $$ >> {folder / 'mcp'}; exec {served}"
    mcp: JsonObject = {"command": "bash", "args": ["-c", line], "tools": ["*"]}
    options: JsonObject = {"mcpServers": {"leaves": mcp}, "availableTools": ["bash", "daemon"]}
    session = await server.wire.create(scripted(*turns), **options)
    await server.wire.prompt(session)
    await status(server.wire, session, "leaves", "connected")
    found = [int(pid) for file in (pids, folder / "mcp") for pid in file.read_text().split()]
    assert len(found) == 6
    for pid in found:
        os.kill(pid, 0)
    return found


async def end(server: RunningServer, how: str | signal.Signals) -> None:
    match how:
        case "stdin":
            await server.close_stdin()
        case "shutdown":
            await server.wire.call("runtime.shutdown")
        case signal.Signals():
            server.signal(how)
        case _:
            raise AssertionError(how)
    if how == signal.SIGKILL:
        server.expect_exit = -signal.SIGKILL
    await server.exit_code()


async def test_no_descendant_outlives_the_server(tmp_path: Path) -> None:
    with all_cases() as case:
        for how in ENDS:
            folder = tmp_path / str(how)
            folder.mkdir()
            daemon = ["bash", "-c", leaving(folder / "pids", 4)]
            config = f"{UNCONFINED}[tools.daemon]\ndescription = 'Leave a daemon'\ncmds = [{daemon}]\n"
            with case(how):
                async with running_server(folder, args=["--yolo"], config=config) as server:
                    left = await start_everything(server, folder)
                    await end(server, how)
                    for pid in left:
                        await wait_until_gone(pid)


async def test_daemons_of_a_session_end_with_it_and_those_of_other_sessions_stay(tmp_path: Path) -> None:
    async with running_server(tmp_path, args=["--yolo"], config=UNCONFINED) as server:
        found: list[int] = []
        sessions: list[str] = []
        for name in ("one", "two"):
            script = scripted(calls("bash", command=leaving(tmp_path / name, 1)), {"text": "done"})
            sessions.append(await server.wire.create(script))
            await server.wire.prompt(sessions[-1])
            found.append(int((tmp_path / name).read_text()))
        await server.wire.call("session.destroy", {"sessionId": sessions[0]})
        await wait_until_gone(found[0])
        os.kill(found[1], 0)
    await wait_until_gone(found[1])


async def test_a_process_that_has_cleared_its_environment_ends_with_its_parent(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    daemon = f"env -i setsid bash -c 'echo $$ > {pids}; sleep 1000; true' & wait"
    turns = (
        calls("bash", "call-1", command=daemon, mode="async", detach=True),
        calls("bash", "call-2", command=f"until [ -s {pids} ]; do sleep 0.01; done"),
        {"text": "done"},
    )
    async with running_server(tmp_path, args=["--yolo"], config=UNCONFINED) as server:
        await server.wire.prompt(await server.wire.create(scripted(*turns)))
        await end(server, signal.SIGKILL)
        await wait_until_gone(int(pids.read_text()))


async def test_a_server_that_ignores_a_hang_up_goes_on(tmp_path: Path) -> None:
    environ = {**os.environ, "COPILOT_HOME": str(tmp_path)}
    command = ["nohup", str(Path(sys.executable).with_name("jumpseat")), "--port", "0"]
    async with await anyio.open_process(command, env=environ, cwd=tmp_path, stdin=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        assert re.search(rb"listening on port", await server.stdout.receive())
        server.send_signal(signal.SIGHUP)
        server.terminate()
        assert await server.wait() == 0
