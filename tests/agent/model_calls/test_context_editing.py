"""Conversations that the provider shortens itself: only if configured, reported, and given up once refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.events import data_of
from tests.support.model_server import ModelServer, Reply, json_reply
from tests.support.server import JsonObject, running_server

pytestmark = pytest.mark.anyio

BETA = "context-management-2025-06-27"


def config(model: ModelServer, kind: str, options: str) -> str:
    return (
        f'[adapters.a]\ntype = "{kind}"\nbase_url = "{model.url}/v1"\napi_key_env = "NO_KEY"\n{options}\n'
        'models = [{id = "m", context_window = 20000}]\n'
    )


def claude_says(text: str, **fields: object) -> Reply:
    content = [{"type": "text", "text": text}]
    usage = {"input_tokens": 9, "output_tokens": 2}
    return json_reply(
        {"id": "m1", "model": "m", "content": content, "stop_reason": "end_turn", "usage": usage, **fields}
    )


def gpt_says(text: str, *before: JsonObject) -> Reply:
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    return json_reply({"id": "r1", "model": "m", "status": "completed", "output": [*before, message]})


async def test_anthropic_clears_results_that_a_call_shows_again(tmp_path: Path) -> None:
    edit = {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 8, "cleared_input_tokens": 50000}
    applied = {"applied_edits": [edit]}
    replies = [claude_says("one"), *(claude_says("two", context_management=applied) for _ in range(3))]
    async with ModelServer(*replies) as model:
        told: list[JsonObject] = []
        settings = config(model, "anthropic", "options = {context_editing = true}")
        async with running_server(tmp_path, config=settings, env={"NO_KEY": "none"}) as server:
            session = await server.wire.create(None, model="a/m")
            for text in ("a", "b", "c"):
                told += data_of(await server.wire.prompt(session, text), "session.truncation")
        async with running_server(tmp_path, config=settings, env={"NO_KEY": "none"}) as server:
            await server.wire.call("session.resume", {"sessionId": session, "model": "a/m"})
            await server.wire.prompt(session, "d")
    for request in model.requests:
        assert BETA in request.headers["anthropic-beta"]
        (asked,) = request.json["context_management"]["edits"]
        assert (asked["type"], asked["trigger"]) == (edit["type"], {"type": "input_tokens", "value": 15000})
        assert asked["clear_at_least"] == {"type": "input_tokens", "value": 2000}
        # The provider saves nothing: what a command has printed would be lost.
        assert "bash" in asked["exclude_tools"]
        assert "view" not in asked["exclude_tools"]
    # Told when it changes, and not for each request.
    assert [(event["performedBy"], event["tokensRemovedDuringTruncation"]) for event in told] == [
        ("provider", 50000)
    ]
    # The conversation itself stays whole.
    texts = [str(request.json["messages"]) for request in model.requests]
    assert all("one" in text for text in texts[1:])


async def test_openai_compacts_and_what_it_compacted_is_not_sent_again(tmp_path: Path) -> None:
    item = {"type": "compaction", "id": "cmp_1", "encrypted_content": "Y29tcGFjdA=="}
    async with ModelServer(gpt_says("first answer"), gpt_says("second answer", item), gpt_says("third")) as model:
        settings = config(model, "openai_responses", "options = {context_editing = true}")
        async with running_server(tmp_path, config=settings, env={"NO_KEY": "none"}) as server:
            session = await server.wire.create(None, model="a/m")
            for text in ("a", "b", "c"):
                await server.wire.prompt(session, text)
    bodies = [request.json for request in model.requests]
    assert [body["context_management"] for body in bodies] == [
        [{"type": "compaction", "compact_threshold": 15000}]
    ] * 3
    assert "first answer" in json.dumps(bodies[1]["input"])
    assert bodies[2]["input"][0] == item
    assert "first answer" not in json.dumps(bodies[2]["input"])
    assert "second answer" in json.dumps(bodies[2]["input"])


@pytest.mark.parametrize(
    "refusal",
    [
        "context_management: Extra inputs are not permitted",
        f"Unexpected value(s) `{BETA}` for the `anthropic-beta` header.",
        "Unknown parameter: 'context_management'.",
    ],
)
async def test_a_refusal_is_warned_of_once_and_remembered(tmp_path: Path, refusal: str) -> None:
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": refusal}}
    replies = [json_reply(body, status=400), *(claude_says("hi") for _ in range(3))]
    async with ModelServer(*replies) as model:
        settings = config(model, "anthropic", "options = {context_editing = true}")
        async with running_server(tmp_path, config=settings, env={"NO_KEY": "none"}) as server:
            session = await server.wire.create(None, model="a/m")
            first = await server.wire.prompt(session, "a")
            second = await server.wire.prompt(session, "b")
            # Another session of the model does not ask again.
            await server.wire.prompt(await server.wire.create(None, model="a/m"), "c")
    assert ["context_management" in request.json for request in model.requests] == [True, False, False, False]
    (warning,) = data_of(first, "session.warning")
    assert warning["warningType"] == "context_editing"
    assert data_of(second, "session.warning") == data_of(first, "session.error") == []


@pytest.mark.parametrize("kind", ["anthropic", "openai_responses"])
async def test_nothing_is_asked_for_by_default(tmp_path: Path, kind: str) -> None:
    reply = claude_says("hi") if kind == "anthropic" else gpt_says("hi")
    async with ModelServer(reply) as model:
        settings = config(model, kind, "")
        async with running_server(tmp_path, config=settings, env={"NO_KEY": "none"}) as server:
            await server.wire.prompt(await server.wire.create(None, model="a/m"), "a")
    (request,) = model.requests
    assert "context_management" not in request.json
