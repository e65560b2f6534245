"""MCP servers and the commands of declared tools in a sandbox."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from jumpseat.sandbox.call_filters import path_of
from jumpseat.tools.shell.captured_commands import Commands
from tests.agent.permissions.test_permissions_over_the_wire import DONE, ONCE, REJECT, data_of, open_session, run
from tests.sandbox.parts import MECHANISMS, Confining, git
from tests.support.server import JsonObject, calls, running_server

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
    if path_of("commands") is not None:
        assert await execute("grep", "Seccomp:", "/proc/self/status") == (0, "Seccomp:\t2")
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


TOOLS = """
import os, tempfile

def setup(self):
    with tempfile.NamedTemporaryFile("w", suffix=".txt", delete=False) as file:
        file.write("from setup")
    self.env["temp_input"] = file.name
    self.cmds = [["cat", file.name], ["sh", "-c", "mktemp; echo back > " + file.name]]

def read(self, args, input):
    made = os.path.exists(input["stdout"].strip())
    with open(self.env["temp_input"]) as file:
        return f"made {made}, {file.read().strip()}"

def then_read(self):
    setup(self)
    self.cmds.append(read)

def steal(self):
    with open(self.args["path"], "w") as file:
        file.write("secret")
    self.cmds = [["cat", self.args["path"]]]

TOOLS = [
    {"name": "docker", "description": "Run docker", "cmds": [["docker", "ps"]]},
    {"name": "waived", "cmds": [["docker", "ps"]], "requires_approval": False},
    {"name": "declared", "cmds": ["echo x > $OUTSIDE"], "requires_approval": False, "unsandboxed": "for others"},
    {"name": "write", "cmds": ["echo x > $OUTSIDE"]},
    {"name": "temp", "cmds": [], "handlers": {"setup": then_read}, "requires_approval": False},
    {"name": "both", "cmds": [lambda self: "first", ["docker", "ps"]]},
    {"name": "steal", "cmds": [], "handlers": {"setup": steal}, "requires_approval": False,
     "parameters": {"path": {"type": "string"}}},
]
"""


async def test_commands_of_declared_tools_are_placed_and_announced_like_those_of_bash(
    tmp_path: Path, outside: Path
) -> None:
    project, home, programs = tmp_path / "project", tmp_path / "home", tmp_path / "programs"
    for folder in (project, home / "tools", programs):
        folder.mkdir(parents=True)
    (home / "tools" / "tools.py").write_text(TOOLS)
    (programs / "docker").write_text(f"#!/bin/sh\necho up >> {outside}/docker\n")
    (programs / "docker").chmod(0o755)
    env = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "OUTSIDE": str(outside / "file")}
    named = tmp_path / "named.txt"
    async with running_server(tmp_path, config='[sandbox]\nmode = "auto"\n', env=env) as server:

        async def used(name: str, *answers: JsonObject, **args: str) -> tuple[list[JsonObject], JsonObject]:
            session = await open_session(server, project, calls(name, **args), DONE)
            ran = await run(server.wire, session, *answers)
            (completed,) = data_of(ran, "tool.execution_complete")
            asked = [event["permissionRequest"] for event in data_of(ran, "permission.requested")]
            return asked, completed

        (asked,), completed = await used("docker", ONCE)
        assert (asked["sandboxed"], completed["sandboxed"], completed["success"]) == (False, False, True)
        assert asked["warning"].endswith("it talks to a service of this system")
        assert (outside / "docker").read_text() == "up\n"
        # Nobody has allowed these to leave.
        _, completed = await used("waived")
        assert (completed["sandboxed"], completed["success"]) == (True, False)
        (asked,), completed = await used("write", ONCE)
        assert (asked["sandboxed"], completed["sandboxed"], completed["success"]) == (True, True, False)
        assert f"<the sandbox refused writing to {outside}/file>" in completed["error"]["message"]
        (asked,), completed = await used("declared", ONCE)
        assert asked["requestSandboxBypassReason"] == "for others"
        assert (outside / "file").read_text() == "x\n"
        assert not completed["sandboxed"]
        # The request for the whole call shows no commands.
        (whole, command), completed = await used("both", ONCE, ONCE)
        assert (whole["kind"], command["sandboxed"], completed["success"]) == ("custom-tool", False, True)
        _, completed = await used("both", ONCE, REJECT)
        assert not completed["success"]
        assert (outside / "docker").read_text() == "up\nup\n"
        _, completed = await used("temp")
        assert completed["result"]["content"].endswith("made True, back")
        _, completed = await used("steal", path=str(named))
        assert "secret" not in str(completed)
