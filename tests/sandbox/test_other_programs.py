"""MCP servers and the commands of declared tools in a sandbox."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from jumpseat.tools.shell.captured_commands import Commands
from tests.agent.permissions.test_permissions_over_the_wire import DONE, data_of, open_session, run
from tests.sandbox.parts import MECHANISMS, Confining, git
from tests.support.server import calls, running_server

pytestmark = [pytest.mark.anyio, pytest.mark.skipif("bubblewrap" not in MECHANISMS, reason="needs bubblewrap")]

SERVER = """
import json, os, pathlib, sys
def attempt(path):
    try:
        pathlib.Path(path).write_text("x")
        return "written"
    except OSError as error:
        return f"refused {error.errno}"
for line in sys.stdin:
    message = json.loads(line)
    match message.get("method"):
        case "initialize":
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                      "serverInfo": {"name": "s", "version": "1"}}
        case "tools/list":
            result = {"tools": [{"name": "try", "inputSchema": {"type": "object"}}]}
        case "tools/call":
            text = f"inside {attempt('inside')}, outside {attempt(sys.argv[1])}"
            result = {"content": [{"type": "text", "text": text}]}
        case _:
            continue
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


async def test_an_mcp_server_is_confined_if_the_configuration_says_so(tmp_path: Path, outside: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "server.py").write_text(SERVER)
    file = outside / "file"
    server_config = {"command": sys.executable, "args": ["server.py", str(file)], "tools": ["*"]}
    config = '[sandbox]\nmcp = "require"\nmode = "auto"\n[permissions]\nallow = ["mcp"]\n'
    async with running_server(tmp_path, config=config) as server:
        session = await open_session(server, project, calls("s-try"), DONE, mcpServers={"s": server_config})
        events = await run(server.wire, session)
    (completed,) = data_of(events, "tool.execution_complete")
    assert completed["result"]["content"] == "inside written, outside refused 30"
    assert not file.exists()


async def test_git_of_the_server_only_reads(tmp_path: Path, outside: Path) -> None:
    project, programs = tmp_path / "project", tmp_path / "programs"
    project.mkdir()
    programs.mkdir()
    git(project, "init", "-q")
    (project / "new").write_text("text\n")
    (project / "ignored").write_text("text\n")
    (project / ".gitignore").write_text("ignored\n")
    found = shutil.which("git")
    # A program that git would run, if a setting that is not known to run programs made git do so.
    (programs / "git").write_text(f'#!/bin/sh\ntouch {outside}/written new 2>/dev/null\nexec {found} "$@"\n')
    (programs / "git").chmod(0o755)
    env = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    before = (project / "new").stat().st_mtime_ns
    async with running_server(tmp_path, env=env, config='[permissions]\nallow = ["read"]\n') as server:
        session = await open_session(server, project, calls("grep", pattern="text"), DONE)
        (completed,) = data_of(await run(server.wire, session), "tool.execution_complete")
        params = {"sessionId": session, "mode": "unstaged"}
        changes = (await server.wire.call("session.workspaces.diff", params))["changes"]
    assert completed["result"]["content"] == "./new"
    assert {change["path"] for change in changes} == {".gitignore", "new"}
    assert not (outside / "written").exists()
    assert (project / "new").stat().st_mtime_ns == before


async def test_commands_of_declared_tools_are_confined_like_those_of_bash(tmp_path: Path) -> None:
    session = Confining(tmp_path / "project", tmp_path / "home", mechanism=MECHANISMS["bubblewrap"])
    commands = Commands(session.sandbox)

    async def execute(*argv: str, timeout_s: float = 10) -> tuple[int, str]:
        result = await commands.run(
            argv,
            cwd=session.project,
            environ=session.environ,
            stdin="input",
            timeout_s=timeout_s,
            show=lambda _: None,
        )
        return result.exit_code, result.stdout

    assert await execute("sh", "-c", "cat > file; touch /usr/share/x || exit 3") == (3, "")
    assert (session.project / "file").read_text() == "input"
    line = "trap 'touch ended; exit 1' TERM; touch begun; while :; do sleep 0.01; done"
    # A busy machine may not have begun the command before its end.
    for timeout_s in (0.5, 3, 20):
        assert (await execute("sh", "-c", line, timeout_s=timeout_s))[0] == 124
        if (session.project / "begun").exists():
            break
    assert (session.project / "ended").exists()
    with pytest.raises(FileNotFoundError):
        await execute("no-such-program")
    await commands.close(0)
