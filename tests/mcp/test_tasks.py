"""Calls of MCP servers that run as tasks: progress, questions, failures, cancelling, and a restart in between."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from tests.support.cases import all_cases
from tests.support.limits import WAIT_S
from tests.support.mcp_servers import call, session_with, status
from tests.support.model_server import ModelServer
from tests.support.server import JsonObject, calls, running_server, scripted
from tests.support.task_server import TaskServer

pytestmark = pytest.mark.anyio

WORKING: Final[JsonObject] = {"status": "working", "statusMessage": "digging"}
DONE: Final[JsonObject] = {
    "status": "completed",
    "result": {"content": [{"type": "text", "text": "found water"}], "resultType": "complete"},
}
FORM: Final[JsonObject] = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "How deep?",
        "requestedSchema": {"type": "object", "properties": {"metres": {"type": "integer"}}},
    },
}
TURNS: Final = (calls("far-dig"), {"text": "It says: {{last_tool_result}}"})


async def test_the_result_of_a_task_is_that_of_the_call_and_its_progress_is_shown(tmp_path: Path) -> None:
    far = TaskServer([WORKING, {**WORKING, "statusMessage": "deeper"}, DONE])
    async with ModelServer(answer=far) as server, running_server(tmp_path, args=["--yolo"]) as ours:
        session = await session_with(ours.wire, "far", {"url": f"{server.url}/mcp"}, *TURNS)
        done, said = await call(ours.wire, session)
        assert done["success"]
        assert said == "It says: found water"
        shown = [event["data"]["progressMessage"] for event in ours.wire.events(session) if _is_progress(event)]
        assert any("deeper" in text for text in shown)
        assert far.count("tools/call") == 1
        assert far.count("tasks/get") == 3


def _is_progress(event: JsonObject) -> bool:
    return event["type"] == "tool.execution_progress"


async def test_a_task_that_asks_gets_one_answer_to_each_question(tmp_path: Path) -> None:
    asking = {"status": "input_required", "inputRequests": {"depth": FORM}}
    far = TaskServer([asking, asking, DONE])
    async with ModelServer(answer=far) as server, running_server(tmp_path, args=["--yolo"]) as ours:
        wire = ours.wire
        config = {"url": f"{server.url}/mcp"}
        session = await session_with(wire, "far", config, *TURNS, requestElicitation=True)
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        asked = await wire.event("elicitation.requested", session=session)
        answer = {"action": "accept", "content": {"metres": 7}}
        params = {"sessionId": session, "requestId": asked["data"]["requestId"], "result": answer}
        await wire.call("session.ui.handlePendingElicitation", params)
        await wire.event("session.idle", session=session)
        updates = [message["params"] for message in far.asked if message["method"] == "tasks/update"]
        assert [update["inputResponses"]["depth"]["content"] for update in updates] == [{"metres": 7}]


async def test_tasks_that_fail_are_told_to_the_model(tmp_path: Path) -> None:
    failed = {"status": "failed", "error": {"code": -32000, "message": "hit rock"}}
    wrong: JsonObject = {"status": "completed", "result": {"content": 7}}
    async with running_server(tmp_path, args=["--yolo"]) as ours:
        with all_cases() as case:
            for state, expected in (
                (failed, "hit rock"),
                ({"status": "cancelled"}, "the server has cancelled the task"),
                (wrong, "does not match the protocol"),
            ):
                with case(expected):
                    async with ModelServer(answer=TaskServer([state])) as server:
                        session = await session_with(ours.wire, "far", {"url": f"{server.url}/mcp"}, *TURNS)
                        done, said = await call(ours.wire, session)
                        assert not done["success"]
                        assert expected in said


async def test_an_abort_cancels_the_task_at_its_server(tmp_path: Path) -> None:
    far = TaskServer([WORKING])
    async with ModelServer(answer=far) as server, running_server(tmp_path, args=["--yolo"]) as ours:
        session = await session_with(ours.wire, "far", {"url": f"{server.url}/mcp"}, *TURNS)
        await ours.wire.call("session.send", {"sessionId": session, "prompt": "go"})
        await ours.wire.event("mcp.task_created", session=session)
        await ours.wire.call("session.abort", {"sessionId": session})
        await ours.wire.event("session.idle", session=session)
        with anyio.fail_after(WAIT_S):
            while not far.count("tasks/cancel"):
                await anyio.lowlevel.checkpoint()
        ends = [one for one in ours.wire.events(session) if one["type"] == "tool.execution_complete"]
        assert len(ends) == 1


@pytest.mark.parametrize("how", ["end", "kill"])
async def test_a_task_survives_a_restart_and_the_call_is_answered_once(tmp_path: Path, how: str) -> None:
    far = TaskServer([WORKING])
    async with ModelServer(answer=far) as server:
        config = {"far": {"url": f"{server.url}/mcp"}}
        async with running_server(tmp_path, args=["--yolo"]) as ours:
            session = await session_with(ours.wire, "far", config["far"], *TURNS)
            await ours.wire.call("session.send", {"sessionId": session, "prompt": "go"})
            await ours.wire.event("mcp.task_created", session=session)
            if how == "kill":
                await ours.kill()
        assert not far.count("tasks/cancel")
        far.states[:] = [WORKING, DONE]
        async with running_server(tmp_path, args=["--yolo"]) as ours:
            params: dict[str, Any] = {
                "sessionId": session,
                "mcpServers": config,
                "continuePendingWork": True,
                "requestPermission": False,
                "provider": scripted(*TURNS),
            }
            await ours.wire.call("session.resume", params)
            await status(ours.wire, session, "far", "connected")
            await ours.wire.event("session.idle", session=session)
            stored = (await ours.wire.call("session.getMessages", {"sessionId": session}))["events"]
            ends = [one["data"] for one in stored if one["type"] == "tool.execution_complete"]
            assert len(ends) == 1, ends
            assert ends[0]["success"], ends
            assert ends[0]["result"]["content"] == "found water"
            assert any(one["data"].get("content") == "It says: found water" for one in stored)
            assert far.count("tools/call") == 1
