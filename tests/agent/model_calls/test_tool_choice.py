"""``toolChoice`` of create, resume, options and send in requests to the provider."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.model_server import ModelServer, Reply, event_stream
from tests.support.server import JsonObject, Wire, running_server, scripted

pytestmark = pytest.mark.anyio

TOOLS: Final = [
    {"name": name, "description": "", "parameters": {"type": "object"}, "skipPermission": True}
    for name in ("add", "mul")
]
ADD: Final = {"type": "function", "function": {"name": "add"}}


def chat(delta: JsonObject, finish: str = "stop") -> Reply:
    chunk = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return event_stream(f"data: {json.dumps(chunk)}\n\n".encode(), b"data: [DONE]\n\n")


def call(name: str = "add") -> Reply:
    return chat(
        {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": name, "arguments": "{}"}}]}, "tool_calls"
    )


def done() -> Reply:
    return chat({"content": "done"})


def provider(server: ModelServer) -> JsonObject:
    return {"type": "openai_compatible", "baseUrl": server.url}


def choices(server: ModelServer) -> list[Any]:
    return [request.json.get("tool_choice") for request in server.requests]


async def tool_turn(wire: Wire, session: str, **more: Any) -> None:
    since = len(wire.messages)
    await wire.call("session.send", {"sessionId": session, "prompt": "go", **more})
    request = await wire.event("external_tool.requested", session=session, since=since)
    answer = {"sessionId": session, "requestId": request["data"]["requestId"], "result": "3"}
    await wire.call("session.tools.handlePendingToolCall", answer)
    await wire.event("session.idle", session=session, since=since)


async def test_a_forced_tool_applies_to_the_first_call_of_every_run_and_parallel_to_all(tmp_path: Path) -> None:
    choice = {"mode": "specific", "toolName": "add", "parallel": False}
    async with ModelServer(call(), done(), call(), done()) as server, running_server(tmp_path) as ours:
        session = await ours.wire.create(provider(server), model="m", tools=TOOLS, toolChoice=choice)
        await tool_turn(ours.wire, session)
        await tool_turn(ours.wire, session)

    assert choices(server) == [ADD, "auto", ADD, "auto"]
    assert {request.json["parallel_tool_calls"] for request in server.requests} == {False}


async def test_none_and_auto_apply_to_the_whole_run(tmp_path: Path) -> None:
    async with ModelServer(call(), done()) as server, running_server(tmp_path) as ours:
        session = await ours.wire.create(provider(server), model="m", tools=TOOLS, toolChoice={"mode": "none"})
        await tool_turn(ours.wire, session)

    assert choices(server) == ["none", "none"]


async def test_the_choice_of_a_message_wins_only_for_its_run(tmp_path: Path) -> None:
    async with ModelServer(done(), done(), done()) as server, running_server(tmp_path) as ours:
        wire = ours.wire
        session = await wire.create(provider(server), model="m", tools=TOOLS, toolChoice={"mode": "none"})
        params = {"sessionId": session, "prompt": "go"}
        await wire.call("session.sendAndWait", {**params, "toolChoice": {"mode": "required"}})
        await wire.call("session.sendAndWait", params)
        await wire.call("session.options.update", {"sessionId": session, "toolChoice": {"mode": "auto"}})
        await wire.call("session.sendAndWait", params)

    assert choices(server) == ["required", "none", "auto"]


async def test_the_choice_of_a_steering_message_applies_to_the_next_call(tmp_path: Path) -> None:
    async with ModelServer(call(), call("mul"), done()) as server, running_server(tmp_path) as ours:
        wire = ours.wire
        session = await wire.create(provider(server), model="m", tools=TOOLS, toolChoice={"mode": "auto"})
        params = {"sessionId": session, "prompt": "go"}
        await wire.call("session.send", params)
        for name, more in (("add", {"toolChoice": {"mode": "specific", "toolName": "mul"}}), ("mul", {})):
            request = await wire.event("external_tool.requested", session=session, toolName=name)
            if more:
                await wire.call("session.send", {**params, "mode": "immediate", **more})
            answer = {"sessionId": session, "requestId": request["data"]["requestId"], "result": "3"}
            await wire.call("session.tools.handlePendingToolCall", answer)
        await wire.event("session.idle", session=session)

    assert choices(server) == ["auto", {"type": "function", "function": {"name": "mul"}}, None]


async def test_a_resumed_session_keeps_its_choice_unless_it_is_replaced(tmp_path: Path) -> None:
    async with ModelServer(done(), done(), done()) as server, running_server(tmp_path) as ours:
        wire = ours.wire
        session = await wire.create(provider(server), model="m", tools=TOOLS, toolChoice={"mode": "required"})
        await wire.prompt(session)
        again = {"sessionId": session, "provider": provider(server), "model": "m", "tools": TOOLS}
        for more in ({}, {"toolChoice": {"mode": "none"}}):
            await wire.call("session.destroy", {"sessionId": session})
            await wire.call("session.resume", {**again, **more})
            await wire.prompt(session)

    assert choices(server) == ["required", "required", "none"]


async def test_an_invalid_choice_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    unknown = {"toolChoice": {"mode": "specific", "toolName": "div"}}
    async with running_server(tmp_path) as ours:
        wire, model = ours.wire, scripted({"text": "fine"})
        error = await wire.error_of(
            "session.create", {"sessionId": "s1", "provider": model, "tools": TOOLS, **unknown}
        )
        assert error["code"] == -32003
        assert "toolChoice names the unknown tool 'div', expected one of add, " in error["message"]
        session = await wire.create(model, sessionId="s1", tools=TOOLS)
        for method, params in (
            ("session.send", {"prompt": "go"}),
            ("session.options.update", {"streaming": True}),
            ("session.resume", {"availableTools": ["add"]}),
        ):
            error = await wire.error_of(method, {"sessionId": session, **params, **unknown})
            assert "unknown tool 'div'" in error["message"]
        left_out = {
            "sessionId": session,
            "availableTools": ["mul"],
            "toolChoice": {"mode": "specific", "toolName": "add"},
        }
        assert "expected one of mul" in (await wire.error_of("session.options.update", left_out))["message"]
        for wrong in ({"mode": "specific"}, {"toolName": "add"}, {"mode": "any"}):
            error = await wire.error_of("session.send", {"sessionId": session, "prompt": "go", "toolChoice": wrong})
            assert (error["code"], "toolChoice" in error["message"]) == (-32602, True)
        events = await wire.prompt(session)

    assert [event["data"]["content"] for event in events if event["type"] == "assistant.message"] == ["fine"]


async def test_a_chosen_tool_that_was_removed_ends_the_run_with_an_error_that_names_it(tmp_path: Path) -> None:
    async with running_server(tmp_path) as ours:
        wire, model = ours.wire, scripted({"text": "never"})
        choice = {"mode": "specific", "toolName": "add"}
        session = await wire.create(model, tools=TOOLS, toolChoice=choice)
        await wire.call("session.options.update", {"sessionId": session, "excludedTools": ["add"]})
        events = await wire.prompt(session)

    (error,) = [event["data"] for event in events if event["type"] == "session.error"]
    assert "unknown tool 'add'" in error["message"]
