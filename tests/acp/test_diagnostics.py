"""Diagnostics of an MCP server that an editor brings, in place of those of our own servers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.lsp.parts import language_servers, project_with, word_config
from tests.lsp.test_client_diagnostics_over_the_wire import EDITS, FILES
from tests.support.editor import CONFIG, Schemas, option, running_editor
from tests.support.server import calls

pytestmark = pytest.mark.anyio

IDE = """
import sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])
from mcp.server.mcpserver import MCPServer
from tests.lsp.test_client_diagnostics_over_the_wire import as_json

server = MCPServer("ide")


@server.tool()
def getDiagnostics(uri: str = "") -> str:
    return as_json(Path(sys.argv[2]), {})


server.run()
"""


@pytest.mark.parametrize("rule", ["", 'allow = ["mcp(ide)"]'], ids=["not allowed", "allowed"])
async def test_an_mcp_server_of_an_acp_editor_lists_diagnostics_if_it_may_run_unasked(
    tmp_path: Path, schemas: Schemas, rule: str
) -> None:
    project = project_with(tmp_path, FILES)
    program = tmp_path / "ide.py"
    program.write_text(IDE)
    allowed = word_config(project).replace("[permissions]", f"[permissions]\n{rule}")
    config = f"{allowed}\n{CONFIG}"
    ide = {
        "name": "ide",
        "command": sys.executable,
        "args": [str(program), str(Path(__file__).parents[2]), str(project)],
        "env": [],
    }
    answers = {"session/request_permission": option("allow_once")}
    # The first call waits until the server is connected.
    turns = [calls("ide-getDiagnostics", "call-0"), EDITS[0], {"text": "{{last_tool_result}}"}]
    async with running_editor(tmp_path, schemas, *turns, config=config, answers=answers) as (server, editor):
        opened = await editor.call("session/new", {"cwd": str(project), "mcpServers": [ide]})
        await editor.say(opened["sessionId"], "go")
        source = "words" if rule else "words unknown"
        assert f"5:5: unknown name tow ({source})\n  5. use tow" in editor.answer_text(opened["sessionId"])
        assert bool(language_servers(server)) == (not rule)
