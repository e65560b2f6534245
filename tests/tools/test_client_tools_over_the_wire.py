"""Client tools over the real wire: calls without an answer of the client."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.server import JsonObject, calls, running_server, scripted

pytestmark = pytest.mark.anyio

TOOL = {"name": "look_up", "skipPermission": True}


async def test_a_call_that_the_client_never_answers_fails_at_the_configured_time_limit(
    tmp_path: Path,
) -> None:
    provider = scripted(calls("look_up", "c1"), {"text": "Then without."})
    async with running_server(tmp_path, config="[clients]\ntool_timeout_s = 0.25\n") as server:
        wire = server.wire
        session = await wire.create(provider, tools=[TOOL])
        await wire.prompt(session)
        question = await wire.event("external_tool.requested", session=session)
        completion = await wire.event("tool.execution_complete", session=session)
        request_id = question["data"]["requestId"]
        await wire.event("external_tool.completed", session=session, requestId=request_id)
        message = await wire.event("assistant.message", session=session, content="Then without.")
        late = {"sessionId": session, "requestId": request_id, "result": "42"}
        answered = await wire.call("session.tools.handlePendingToolCall", late)
    assert (completion["data"]["success"], completion["data"]["error"]) == (
        False,
        {"message": "The tool `look_up` gave no result within 0.25 s.", "code": "timeout"},
    )
    assert message
    assert answered == {"success": False}


async def test_an_abort_ends_a_call_that_waits_for_a_client(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(scripted(calls("look_up", "c1"), calls("look_up", "c2")), tools=[TOOL])
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        question = await wire.event("external_tool.requested", session=session)
        await wire.call("session.abort", {"sessionId": session})
        await wire.event("session.idle", session=session)
        completions = [event for event in wire.events(session) if event["type"] == "tool.execution_complete"]
        late = {"sessionId": session, "requestId": question["data"]["requestId"], "result": "42"}
        answered = await wire.call("session.tools.handlePendingToolCall", late)
    assert [(completion["data"]["toolCallId"], completion["data"]["success"]) for completion in completions] == [
        ("c1", False)
    ]
    assert answered == {"success": False}


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        ({"name": "bad name!"}, "tool name 'bad name!': expected 1 to 128 letters, digits, '_' and '-'"),
        (
            {"name": "x", "parameters": {"type": "object", "properties": {"type": {"type": "strnig"}}}},
            "tool 'x': parameters.properties.type.type: unknown type 'strnig', did you mean 'string'?",
        ),
        (
            {"name": "x", "parameters": {"type": "array", "items": {}}},
            "tool 'x': parameters.type: expected an object schema, got type 'array'",
        ),
    ],
)
async def test_a_tool_that_providers_would_refuse_is_refused_at_once(
    tmp_path: Path, tool: JsonObject, expected: str
) -> None:
    async with running_server(tmp_path) as server:
        params = {"provider": scripted({"text": "hi"}), "tools": [tool]}
        error = await server.wire.error_of("session.create", params)
    assert expected in error["message"]
