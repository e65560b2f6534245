"""MCP servers whose programs are in the project, where confined commands can write, but which run outside."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.agent.permissions.test_permissions_over_the_wire import DONE, ONCE, bash, run
from tests.sandbox.parts import MECHANISMS
from tests.support.mcp_servers import list_servers, status
from tests.support.server import JsonObject, RunningServer, running_server, scripted

pytestmark = [pytest.mark.anyio, pytest.mark.skipif("bubblewrap" not in MECHANISMS, reason="needs bubblewrap")]

PROGRAM = """
import json, sys
import helper
for line in sys.stdin:
    call = json.loads(line)
    answers = {
        "initialize": {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}},
    }
    if "id" in call:
        found = answers.get(call["method"])
        answer = {"result": found} if found else {"error": {"code": -32601, "message": "no"}}
        print(json.dumps({"jsonrpc": "2.0", "id": call["id"], **answer}), flush=True)
"""
HELPER = "from pathlib import Path\nPath(__file__).parent.parent.joinpath('started').touch()\n"
EVIL = "; ".join(["from pathlib import Path", "Path.home().joinpath('evil').touch()"])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "tools").mkdir(parents=True)
    (folder / "tools" / "srv.py").write_text(PROGRAM)
    (folder / "tools" / "helper.py").write_text(HELPER)
    (folder / ".mcp.json").write_text(
        json.dumps({"mcpServers": {"srv": {"command": sys.executable, "args": ["tools/srv.py"]}}})
    )
    return folder


def config(project: Path) -> str:
    return f'trusted_folders = ["{project}"]\n[sandbox]\nmode = "auto"\nmcp = "off"\n'


async def opened(server: RunningServer, project: Path, *turns: JsonObject, **options: Any) -> str:
    """Open a session that finds the server of the project."""
    return await server.wire.create(
        scripted(*turns, DONE),
        workingDirectory=str(project),
        **{"requestPermission": True, "enableConfigDiscovery": True, **options},
    )


async def test_x(tmp_path: Path, project: Path) -> None:
    async with running_server(tmp_path, config=config(project)) as server:
        first = await opened(server, project, bash("echo 'print(1)' >> tools/helper.py"))
        await status(server.wire, first, "srv", "connected")
        events = await run(server.wire, first, ONCE)
        print(await list_servers(server.wire, {"sessionId": first}))
        second = await opened(server, project)
        asked = await server.wire.event("permission.requested", session=second)
        print(asked)
    assert 0
