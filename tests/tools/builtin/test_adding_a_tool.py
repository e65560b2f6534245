"""The recipe for a tool in CONTRIBUTING.md, applied to a copy of the server."""

from __future__ import annotations

from pathlib import Path

from tests.support.recipes import recipe_server
from tests.support.server import calls, scripted


def test_the_recipe_adds_a_tool_that_a_model_can_call(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("one\ntwo\n")
    script = scripted(calls("count_lines", path="lines.txt"), {"text": "done"})
    with recipe_server(tmp_path) as server:
        session = {"sessionId": server.call("session.create", {"provider": script})["sessionId"]}
        server.call("session.permissions.setApproveAll", {**session, "enabled": True})
        server.call("session.sendAndWait", {**session, "prompt": "go"})
        events = server.call("session.getMessages", session)["events"]
        tools = server.call("tools.list", {})["tools"]
        page = (tmp_path / "docs" / "builtin-tools.md").read_text()

    (completion,) = [event["data"] for event in events if event["type"] == "tool.execution_complete"]
    assert completion["result"]["content"] == "2"
    assert "count_lines" in [tool["name"] for tool in tools]
    assert "\n| `count_lines` | count the lines of a file | `read` | always |\n" in page
