"""Tools of servers that are not offered yet, no longer, or under another name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.mcp_servers import call, rude, session_with, status, stdio, turn
from tests.support.server import calls, running_server, scripted

pytestmark = pytest.mark.anyio
YOLO = ("--yolo",)


async def test_the_user_and_the_model_learn_that_a_server_is_still_being_started(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    turns = (*turn("late-go"), *turn("late-go"), *turn("other-go"))
    servers = {"late": rude("late", str(gate)), "other": rude("dying")}
    async with running_server(tmp_path, args=YOLO) as server:
        wire = server.wire
        session = await wire.create(scripted(*turns), mcpServers=servers, requestPermission=False)
        await status(wire, session, "other", "failed")
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        warning = await wire.event("session.warning", session=session)
        await wire.event("tool.execution_start", session=session)
        gate.touch()
        early = (await wire.event("tool.execution_complete", session=session))["data"]["error"]["message"]
        await wire.event("session.idle", session=session)
        _, later = await call(wire, session)
        failed, _ = await call(wire, session)
    assert warning["data"]["message"].endswith("their tools are not offered yet: 'late'.")
    assert "has just been started. Call the tool again" in early
    assert later == "ok"
    assert "'other' has failed: the process has ended: cannot open the database" in failed["error"]["message"]


async def test_a_list_that_changes_during_a_call_is_used_in_the_next_model_call(tmp_path: Path) -> None:
    turns = (calls("rude-go", "1"), calls("rude-tool-50", "2"), {"text": "end"})
    async with running_server(tmp_path, args=YOLO) as server:
        session = await session_with(server.wire, "rude", rude("growing"), *turns)
        events = await server.wire.prompt(session)
    done = [event["data"]["success"] for event in events if event["type"] == "tool.execution_complete"]
    assert done == [True, True]


async def test_a_tool_whose_name_a_client_tool_has_gets_a_hash(tmp_path: Path) -> None:
    client_tool = {"name": "testing-echo", "description": "the client's"}
    async with running_server(tmp_path, args=YOLO) as server:
        session = await session_with(server.wire, "testing", stdio(), *turn("testing-pid"), tools=[client_tool])
        metadata = await server.wire.call("session.tools.getCurrentMetadata", {"sessionId": session})
    names = {tool["name"]: tool.get("mcpToolName") for tool in metadata["tools"] if "-echo" in tool["name"]}
    (hashed,) = names.keys() - {"testing-echo"}
    assert names == {"testing-echo": None, hashed: "echo"}
    assert hashed.startswith("testing-echo_")
