"""Sessions with models behind Gemini's wires, from the client to the provider and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.model_server import ModelServer, Reply, event_stream, json_reply
from tests.support.server import running_server

pytestmark = pytest.mark.anyio

SIGNATURE = "EvIBCu8BAb4="
LOOKUP: dict[str, Any] = {
    "skipPermission": True,
    "name": "lookup",
    "description": "Look up",
    "parameters": {"type": "object", "properties": {}},
}


def frames(*chunks: dict[str, Any]) -> Reply:
    return event_stream(*(b"data: %s\r\n\r\n" % json.dumps(chunk).encode() for chunk in chunks))


def candidate(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": list(parts), "role": "model"}, **more}]}


def step(kind: str, **fields: Any) -> dict[str, Any]:
    return {"event_type": kind, **fields}


GENERATE_CONTENT = [
    frames(
        candidate({"text": "I should look.", "thought": True}),
        candidate(
            {"functionCall": {"id": "a1", "name": "lookup", "args": {"key": "k"}}, "thoughtSignature": SIGNATURE},
            finishReason="STOP",
        ),
    ),
    frames(
        candidate({"text": "It is "}),
        candidate({"text": "42."}, finishReason="STOP")
        | {"usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 3, "totalTokenCount": 12}},
    ),
]
INTERACTIONS = [
    frames(
        step("step.start", index=0, step={"type": "thought"}),
        step("step.delta", index=0, delta={"type": "thought_summary", "content": {"text": "I should look."}}),
        step("step.delta", index=0, delta={"type": "thought_signature", "signature": SIGNATURE}),
        step("step.start", index=1, step={"type": "function_call", "id": "a1", "name": "lookup", "arguments": {}}),
        step("step.delta", index=1, delta={"type": "arguments_delta", "arguments": '{"key":"k"}'}),
        step("interaction.completed", interaction={"status": "requires_action"}),
    ),
    frames(
        step("step.start", index=0, step={"type": "model_output"}),
        step("step.delta", index=0, delta={"type": "text", "text": "It is "}),
        step("step.delta", index=0, delta={"type": "text", "text": "42."}),
        step(
            "interaction.completed",
            interaction={"status": "completed", "usage": {"total_input_tokens": 9, "total_output_tokens": 3}},
        ),
    ),
]
CALL = {"functionCall": {"id": "a1", "name": "lookup", "args": {"key": "k"}}, "thoughtSignature": SIGNATURE}
SENT: dict[str, Any] = {
    "gemini": (
        "/models/gemini-3.5-flash:streamGenerateContent?alt=sse",
        "contents",
        [
            {"role": "model", "parts": [CALL]},
            {
                "role": "user",
                "parts": [{"functionResponse": {"id": "a1", "name": "lookup", "response": {"output": "42"}}}],
            },
        ],
    ),
    "gemini_interactions": (
        "/interactions?alt=sse",
        "input",
        [
            {
                "type": "thought",
                "signature": SIGNATURE,
                "summary": [{"type": "text", "text": "I should look."}],
            },
            {"type": "function_call", "id": "a1", "name": "lookup", "arguments": {"key": "k"}},
            {
                "type": "function_result",
                "call_id": "a1",
                "name": "lookup",
                "result": [{"type": "text", "text": "42"}],
            },
        ],
    ),
}


@pytest.mark.parametrize(("kind", "replies"), [("gemini", GENERATE_CONTENT), ("gemini_interactions", INTERACTIONS)])
async def test_a_session_thinks_calls_a_tool_and_answers(tmp_path: Path, kind: str, replies: list[Reply]) -> None:
    path, conversation, expected = SENT[kind]
    async with ModelServer(*replies) as model, running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(
            {"type": kind, "baseUrl": f"{model.url}/v1beta/", "apiKey": "the-key"},
            model="gemini-3.5-flash",
            reasoningEffort="low",
            streaming=True,
            tools=[LOOKUP],
            availableTools=["lookup"],
        )
        since = len(wire.messages)
        await wire.call("session.send", {"sessionId": session, "prompt": "What is it?"})
        request = await wire.event("external_tool.requested", session=session, since=since)
        await wire.call(
            "session.tools.handlePendingToolCall",
            {"sessionId": session, "requestId": request["data"]["requestId"], "result": "42"},
        )
        await wire.event("session.idle", session=session, since=since)
        events = wire.events(session, since=since)

    def texts(event_type: str, name: str) -> str:
        return "".join(event["data"][name] for event in events if event["type"] == event_type)

    assert texts("assistant.reasoning_delta", "deltaContent") == "I should look."
    assert texts("assistant.message_delta", "deltaContent") == "It is 42."
    usage = [event["data"] for event in events if event["type"] == "assistant.usage"][-1]
    assert (usage["inputTokens"], usage["outputTokens"]) == (9, 3)
    first, second = model.requests
    assert first.path == second.path == f"/v1beta{path}"
    assert first.headers["x-goog-api-key"] == "the-key"
    assert second.json[conversation][-len(expected) :] == expected
    assert "the-key" not in server.stderr


async def test_a_session_resumed_in_another_process_returns_its_signatures(tmp_path: Path) -> None:
    first = frames(
        candidate({"text": "One, "}),
        candidate({"text": "two", "thoughtSignature": SIGNATURE}),
        candidate({"text": "."}, finishReason="STOP"),
    )
    second = frames(candidate({"text": "Three."}, finishReason="STOP"))
    async with ModelServer(first, second) as model:
        provider = {"type": "gemini", "baseUrl": f"{model.url}/v1beta", "apiKey": "the-key"}
        async with running_server(tmp_path) as server:
            session = await server.wire.create(provider, model="gemini-3.5-flash")
            await server.wire.prompt(session, "Count")
        async with running_server(tmp_path) as server:
            await server.wire.call("session.resume", {"sessionId": session, "provider": provider})
            await server.wire.prompt(session, "Go on")
            log = server.log_of(session).read_text()

    assert model.requests[1].json["contents"][1] == {
        "role": "model",
        "parts": [{"text": "One, "}, {"text": "two", "thoughtSignature": SIGNATURE}, {"text": "."}],
    }
    assert "the-key" not in log


async def test_a_wrong_key_is_an_authentication_error_to_the_client(tmp_path: Path) -> None:
    detail = {"reason": "API_KEY_INVALID", "domain": "googleapis.com"}
    error = {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT", "details": [detail]}
    async with ModelServer(json_reply({"error": error}, status=400)) as model, running_server(tmp_path) as server:
        session = await server.wire.create(
            {"type": "gemini", "baseUrl": model.url, "apiKey": "AIza-wrong"}, model="gemini-3.5-flash"
        )
        events = await server.wire.prompt(session)

    errors = [event["data"] for event in events if event["type"] == "session.error"]
    assert [error["errorType"] for error in errors] == ["authentication"]
    assert "rejected the key: HTTP 400 Bad Request: API key not valid. Check that" in errors[0]["message"]
