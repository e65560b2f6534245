"""Sessions with models behind the Responses API: events for the client, and requests to the provider."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.model_server import ModelServer, Reply, event_stream, json_reply
from tests.support.server import Wire, running_server

pytestmark = pytest.mark.anyio

ONCE = "[retry]\nattempts = 1\n"
TOOL = {"name": "add", "description": "Adds", "parameters": {"type": "object"}, "skipPermission": True}
USAGE = {
    "input_tokens": 30,
    "input_tokens_details": {"cached_tokens": 10},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 5},
}
THOUGHT: dict[str, Any] = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2VjcmV0"}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "add", "arguments": '{"a":  1}'}


def frames(*events: dict[str, Any]) -> bytes:
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


def message(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def text_delta(text: str, place: int = 0) -> dict[str, Any]:
    return {"type": "response.output_text.delta", "output_index": place, "content_index": 0, "delta": text}


def ended(*output: dict[str, Any], status: str = "completed", **more: Any) -> dict[str, Any]:
    response = {"id": "resp_1", "status": status, "output": list(output), "usage": USAGE, **more}
    return {"type": f"response.{status}", "response": response}


def provider(server: ModelServer) -> dict[str, Any]:
    return {"type": "openai", "wireApi": "responses", "baseUrl": f"{server.url}/v1", "apiKey": "sk-x-01234"}


async def turn(wire: Wire, session: str) -> list[dict[str, Any]]:
    """Run a prompt to its end; the client's tool returns 3."""
    since = len(wire.messages)
    await wire.call("session.send", {"sessionId": session, "prompt": "go"})
    request = await wire.event("external_tool.requested", session=session, since=since)
    params = {"sessionId": session, "requestId": request["data"]["requestId"], "result": "3"}
    await wire.call("session.tools.handlePendingToolCall", params)
    await wire.event("session.idle", session=session, since=since)
    return wire.events(session, since=since)


def data(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event["data"] for event in events if event["type"] == kind]


async def test_reasoning_calls_and_usage_are_events_and_the_reasoning_goes_back_with_the_result(
    tmp_path: Path,
) -> None:
    thinking = event_stream(
        frames(
            {"type": "response.created", "response": {"id": "resp_1", "model": "m-1"}},
            {"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "id": "rs_1"}},
            {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "Hm"},
            {"type": "response.output_item.done", "output_index": 0, "item": THOUGHT},
            text_delta("Let me", 1),
            text_delta(" add.", 1),
            {"type": "response.output_item.added", "output_index": 2, "item": CALL | {"arguments": ""}},
        ),
        frames({"type": "response.function_call_arguments.delta", "output_index": 2, "delta": '{"a":'}),
        frames(
            {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": "  1}"},
            {"type": "response.output_item.done", "output_index": 2, "item": CALL},
            ended(THOUGHT, message("Let me add."), CALL),
        ),
    )
    done = event_stream(frames(text_delta("Three."), ended(message("Three."))))
    async with ModelServer(thinking, done, done) as server, running_server(tmp_path) as ours:
        wire = ours.wire
        options = {"model": "gpt-5", "streaming": True, "tools": [TOOL], "reasoningEffort": "low"}
        session = await wire.create(provider(server), **options)
        events = await turn(wire, session)
        await wire.call("session.destroy", {"sessionId": session})
        await wire.call("session.resume", {"sessionId": session, "provider": provider(server), **options})
        await wire.prompt(session, "again")

    assert [delta["deltaContent"] for delta in data(events, "assistant.reasoning_delta")] == ["Hm"]
    assert [delta["deltaContent"] for delta in data(events, "assistant.message_delta")] == [
        "Let me",
        " add.",
        "Three.",
    ]
    calls = data(events, "assistant.tool_call_delta")
    assert {call["toolCallId"] for call in calls} == {"call_1"}
    assert "".join(call["inputDelta"] for call in calls) == CALL["arguments"]
    first, last = data(events, "assistant.message")
    assert (first["content"], last["content"]) == ("Let me add.", "Three.")
    usage = data(events, "assistant.usage")[0]
    assert [usage[name] for name in ("inputTokens", "cacheReadTokens", "outputTokens", "reasoningTokens")] == [
        30,
        10,
        7,
        5,
    ]
    initial, second, third = (request.json for request in server.requests)
    assert [(body["store"], body["include"]) for body in (initial, second, third)] == [
        (False, ["reasoning.encrypted_content"])
    ] * 3
    replayed = second["input"][len(initial["input"]) :]
    assert [item["type"] for item in replayed] == ["reasoning", "message", "function_call", "function_call_output"]
    assert replayed[0] == THOUGHT
    assert replayed[2]["arguments"] == CALL["arguments"]
    assert replayed[3] == {"type": "function_call_output", "call_id": "call_1", "output": "3"}
    # Loaded from disk, the conversation is identical.
    assert third["input"][: len(second["input"])] == second["input"]


@pytest.mark.parametrize(
    ("reply", "error_type", "text"),
    [
        (
            event_stream(
                frames(
                    {"type": "response.failed", "response": {"error": {"code": "server_error", "message": "Oh"}}}
                )
            ),
            "query",
            "Oh",
        ),
        (
            event_stream(frames({"type": "error", "code": "rate_limit_exceeded", "message": "Slow"})),
            "rate_limit",
            "Slow",
        ),
        (event_stream(frames(text_delta("Half an"))), "query", "in the middle of its answer"),
        (event_stream(frames(text_delta("Half an")), ending="cut"), "query", ""),
        (event_stream(), "query", "before it sent anything"),
        (
            json_reply({"error": {"message": "no such model", "code": "model_not_found"}}, status=404),
            "query",
            "no such",
        ),
        (json_reply({"error": {"message": "bad key sk-x-01234"}}, status=401), "authentication", "[redacted]"),
    ],
    ids=["failed", "error", "ended-early", "cut", "empty", "404", "401"],
)
async def test_a_failed_answer_is_one_error_and_the_next_prompt_works(
    tmp_path: Path, reply: Reply, error_type: str, text: str
) -> None:
    done = event_stream(frames(ended(message("Fine."))))
    async with ModelServer(reply, done) as server, running_server(tmp_path, config=ONCE) as ours:
        session = await ours.wire.create(provider(server), model="gpt-5", streaming=True)
        failed = await ours.wire.prompt(session)
        after = await ours.wire.prompt(session)

    [error] = data(failed, "session.error")
    assert error["errorType"] == error_type
    assert text in error["message"]
    assert "sk-x-01234" not in error["message"]
    assert failed[-1]["type"] == "session.idle"
    shown = [delta["deltaContent"] for delta in data(failed, "assistant.message_delta")]
    assert [message["content"] for message in data(failed, "assistant.message")] == shown
    assert [message["content"] for message in data(after, "assistant.message")] == ["Fine."]
    # The conversation contains the part of the failed answer that was shown.
    assert ("Half an" in json.dumps(server.requests[-1].json["input"])) == (shown == ["Half an"])


@pytest.mark.parametrize(
    ("end", "content", "reason"),
    [
        (
            ended(message("As far as"), status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
            "As far as",
            "max_tokens",
        ),
        (
            ended({"type": "message", "content": [{"type": "refusal", "refusal": "I will not."}]}),
            "I will not.",
            "refusal",
        ),
        (
            ended(message("How to"), status="incomplete", incomplete_details={"reason": "content_filter"}),
            "How to",
            "content_filter",
        ),
    ],
    ids=["incomplete", "refusal", "filtered"],
)
@pytest.mark.parametrize("streaming", [True, False])
async def test_a_truncated_answer_or_a_refusal_is_an_answer(
    tmp_path: Path, end: dict[str, Any], content: str, reason: str, *, streaming: bool
) -> None:
    reply = event_stream(frames(end)) if streaming else json_reply(end["response"])
    async with ModelServer(reply) as server, running_server(tmp_path) as ours:
        session = await ours.wire.create(provider(server), model="m", streaming=streaming)
        events = await ours.wire.prompt(session)

    assert [message["content"] for message in data(events, "assistant.message")] == [content]
    (usage,) = data(events, "assistant.usage")
    assert usage["finishReason"] == reason
    # A refusal of the model and a content filter of the provider are distinct.
    assert usage.get("contentFilterTriggered", False) == (reason == "content_filter")
    assert data(events, "session.error") == []


async def test_the_response_format_reaches_the_provider_only_with_its_prompt(
    tmp_path: Path,
) -> None:
    city = {"properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}
    schema = {"type": "object", **city}
    wanted = {"type": "json_schema", "jsonSchema": {"name": "place", "schema": schema, "strict": True}}
    replies = [json_reply(ended(message('{"city": "Bonn"}'))["response"])] * 2
    content = {"content": '{"city": "Bonn"}'}
    chat = [json_reply({"choices": [{"message": content, "finish_reason": "stop"}]})] * 2
    async with ModelServer(*replies, *chat) as server, running_server(tmp_path) as ours:
        wire = ours.wire
        for options in (provider(server), provider(server) | {"wireApi": "completions"}):
            session = await wire.create(options, model="m")
            for extra in ({"responseFormat": wanted}, {}):
                await wire.call("session.sendAndWait", {"sessionId": session, "prompt": "where", **extra})

    bodies = [request.json for request in server.requests]
    form = {"name": "place", "schema": schema, "strict": True}
    assert [body.get("text") for body in bodies[:2]] == [{"format": {"type": "json_schema", **form}}, None]
    assert [body.get("response_format") for body in bodies[2:]] == [
        {"type": "json_schema", "json_schema": form},
        None,
    ]
