"""MCP servers whose programs are in the project, where confined commands can write, but which run outside."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

from jumpseat.sandbox.command_times import SLACK_NS
from tests.agent.permissions.test_permissions_over_the_wire import DONE, ONCE, bash, run
from tests.sandbox.parts import MECHANISMS
from tests.support.mcp_servers import status
from tests.support.server import JsonObject, RunningServer, calls, running_server, scripted
from tests.tools.session import until

pytestmark = [pytest.mark.anyio, pytest.mark.skipif("bubblewrap" not in MECHANISMS, reason="needs bubblewrap")]

PROGRAM = """
import json, sys
import helper
for line in sys.stdin:
    call = json.loads(line)
    if "id" in call:
        server = {"name": "s", "version": "1"}
        found = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": server}
        error = {"error": {"code": -32601, "message": "no"}}
        answer = {"result": found} if call["method"] == "initialize" else error
        print(json.dumps({"jsonrpc": "2.0", "id": call["id"], **answer}), flush=True)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "tools").mkdir(parents=True)
    (folder / "tools" / "srv.py").write_text(PROGRAM)
    (folder / "tools" / "helper.py").write_text("x = 1\n")
    servers = {"srv": {"command": sys.executable, "args": ["tools/srv.py"]}}
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    return folder


def settings(project: Path) -> str:
    return f'trusted_folders = ["{project}"]\n[sandbox]\nmode = "auto"\nmcp = "off"\n'


async def opened(server: RunningServer, project: Path, *turns: JsonObject, asks: bool = True) -> str:
    return await server.wire.create(
        scripted(*turns, DONE), workingDirectory=str(project), requestPermission=asks, enableConfigDiscovery=True
    )


async def test_what_the_model_has_changed_is_not_started_unasked(tmp_path: Path, project: Path) -> None:
    line = f"touch {tmp_path}/ran"
    edit = calls(
        "edit", path=str(project / "tools" / "srv.py"), old_str="import helper\n", new_str="import helper \n"
    )
    async with running_server(tmp_path, config=settings(project)) as server:
        wire = server.wire
        session = await opened(server, project, bash(f"echo 'import os; os.system(\"{line}\")' >> tools/helper.py"))
        # Nothing was changed: it starts unasked.
        await status(wire, session, "srv", "connected")
        await run(wire, session, ONCE)
        since = len(wire.events())
        await wire.call("session.mcp.stopServer", {"sessionId": session, "serverName": "srv"})
        await wire.call("session.mcp.startServer", {"sessionId": session, "serverName": "srv"})
        asked = (await wire.event("permission.requested", session=session, since=since))["data"]
        request = asked["permissionRequest"]
        assert (request["sandboxed"], request["canOfferSessionApproval"]) == (False, False)
        assert "tools/helper.py" in request["warning"]
        assert not (tmp_path / "ran").exists()
        answer = {"requestId": asked["requestId"], "result": {"kind": "approve-for-session"}}
        await wire.call("session.permissions.handlePendingPermissionRequest", {"sessionId": session, **answer})
        await status(wire, session, "srv", "connected", since=since)
        assert (tmp_path / "ran").exists()
        # What was allowed is known to later sessions, and an edit by the model is like a command.
        later = await opened(server, project, edit)
        await status(wire, later, "srv", "connected")
        await run(wire, later, ONCE)
    async with running_server(tmp_path, config=settings(project)) as server:
        last = await opened(server, project, asks=False)
        failed = await status(server.wire, last, "srv", "failed")
        assert "tools/srv.py" in failed["data"]["error"]
        # A person has looked at it.
        looked = time.time_ns()
        await until(lambda: time.time_ns() > looked + 2 * SLACK_NS)
        (project / "tools" / "srv.py").write_text(PROGRAM + "# mine\n")
        last = await opened(server, project, asks=False)
        await status(server.wire, last, "srv", "connected")


@pytest.mark.parametrize("by", ["undo", "rewind"])
async def test_what_the_model_wrote_is_not_a_persons_work_once_it_is_restored(
    tmp_path: Path, project: Path, by: str
) -> None:
    program = project / "tools" / "srv.py"

    def edit(old: str, new: str) -> JsonObject:
        return calls("edit", path=str(program), old_str=old, new_str=new)

    turns = [edit("import helper\n", "import helper  # evil\n"), DONE, edit("  # evil", "")]
    async with running_server(tmp_path, config=settings(project)) as server:
        wire = server.wire
        session = await wire.create(
            scripted(*turns, DONE),
            workingDirectory=str(project),
            requestPermission=True,
            enableConfigDiscovery=True,
            enableFileChangeTracking=True,
        )
        await status(wire, session, "srv", "connected")
        await run(wire, session, ONCE)
        since = len(wire.events())
        await run(wire, session, ONCE)
        message = next(event for event in wire.events(session)[since:] if event["type"] == "user.message")
        changed = time.time_ns()
        await until(lambda: time.time_ns() > changed + 2 * SLACK_NS)
        if by == "undo":
            await wire.call("jumpseat.changes.undo", {"sessionId": session})
        else:
            params = {"sessionId": session, "eventId": message["id"], "mode": "conversation-and-files"}
            assert (await wire.call("session.history.rewind", params))["outcome"] == "success"
        assert "# evil" in program.read_text()
    async with running_server(tmp_path, config=settings(project)) as server:
        last = await opened(server, project, asks=False)
        failed = await status(server.wire, last, "srv", "failed")
        assert "tools/srv.py" in failed["data"]["error"]
