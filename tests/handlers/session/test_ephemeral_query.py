"""Questions beside the conversation, over the real wire."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.server import JsonObject, calls, running_server, scripted

pytestmark = pytest.mark.anyio

ASIDE: JsonObject = {
    "type": "scripted",
    "script": {
        "prompts": [
            {"when": "color", "turns": [{"text": "The sky is blue"}]},
            {"when": "never", "turns": [{"text": "Well", "hang": True}]},
            {"when": "broken", "turns": [{"errors": [{"status": 400, "message": "no such thing"}]}]},
        ]
    },
}


async def test_a_question_is_answered_beside_a_running_turn_and_leaves_no_trace(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    script = scripted(calls("bash", command="read line < gate"), {"text": "The sky is blue"})
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(script, workingDirectory=str(tmp_path))
        await wire.call("session.permissions.setApproveAll", {"sessionId": session, "enabled": True})
        await wire.call("session.send", {"sessionId": session, "prompt": "long work"})
        await wire.event("tool.execution_start")
        before = (await wire.call("session.getMessages", {"sessionId": session}))["events"]
        since = len(wire.messages)
        params = {"sessionId": session, "question": "What color?"}
        assert await wire.call("session.ui.ephemeralQuery", params) == {"answer": "The sky is blue"}
        events = wire.events(session, since=since)
        assert {event["type"] for event in events} == {"ui.ephemeral_query"}
        data = [event["data"] for event in events]
        assert [data[0]["phase"], data[-1]["phase"]] == ["started", "completed"]
        assert "".join(part["chunk"] for part in data if part["phase"] == "chunk") == "The sky is blue"
        assert len({part["requestId"] for part in data}) == 1
        assert (await wire.call("session.getMessages", {"sessionId": session}))["events"] == before
        (tmp_path / "gate").write_text("on\n")
        await wire.event("session.idle")


async def test_a_question_without_an_answer_is_an_error(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(ASIDE)
        error = await server.wire.error_of("session.ui.ephemeralQuery", {"sessionId": session, "question": ""})
        assert error["code"] == -32602
        params = {"sessionId": session, "question": "broken"}
        assert "no such thing" in (await server.wire.error_of("session.ui.ephemeralQuery", params))["message"]


async def test_the_model_sees_the_conversation_with_its_tool_calls(tmp_path: Path) -> None:
    script = scripted(calls("view", path="seen"), {"text": "Done"}, {"text": "{{last_tool_result}}"})
    (tmp_path / "seen").write_text("a file\n")
    async with running_server(tmp_path) as server:
        session = await server.wire.create(script, workingDirectory=str(tmp_path))
        await server.wire.call("session.permissions.setApproveAll", {"sessionId": session, "enabled": True})
        await server.wire.prompt(session)
        params = {"sessionId": session, "question": "What was in it?"}
        answer = await server.wire.call("session.ui.ephemeralQuery", params)
        assert "a file" in answer["answer"]


async def test_a_cancelled_question_stops_the_model_call(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(ASIDE)
        asked = await wire.ask("session.ui.ephemeralQuery", {"sessionId": session, "question": "never"})
        await wire.event("ui.ephemeral_query", phase="chunk")
        await wire.send(wire.encode({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": asked}}))
        assert "error" in await wire.response(asked)
        await wire.prompt(session, "What color?")
