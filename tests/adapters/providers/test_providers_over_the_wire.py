"""Sessions with each OpenAI-compatible provider: a tool loop and an error over loopback, in its own dialect."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any, Final

import pytest

from tests.support.model_server import ModelServer, Reply, event_stream, json_reply
from tests.support.server import JsonObject, RunningServer, running_server

pytestmark = pytest.mark.anyio

KEY: Final = "the-key-of-this-session"
CHAT: Final = "/base/chat/completions"
NDJSON: Final = {"Content-Type": "application/x-ndjson"}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """Return the event loop, as for all tests, but with module scope."""
    return "asyncio"


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[RunningServer]:
    async with running_server(
        tmp_path_factory.mktemp("family"), tcp=True, config="[retry]\nattempts = 1\n", limit_s=120
    ) as server:
        yield server


def chat(*deltas: JsonObject, finish: str, usage: JsonObject) -> Reply:
    chunks: list[JsonObject] = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": usage})
    frames = [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks]
    return event_stream(b": a comment\n\n", *frames, b"data: [DONE]\n\n")


def chat_loop(reasoning: JsonObject, call_id: str = "call_1") -> list[Reply]:
    call = {"index": 0, "id": call_id, "function": {"name": "lookup", "arguments": '{"word": "ü"}'}}
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    return [
        chat(reasoning, {"tool_calls": [call]}, finish="tool_calls", usage=usage),
        chat({"content": "It is "}, {"content": "a letter."}, finish="stop", usage=usage),
    ]


def ollama_loop() -> list[Reply]:
    call = {"function": {"name": "lookup", "arguments": {"word": "ü"}}}
    counts = {"done": True, "done_reason": "stop", "prompt_eval_count": 7, "eval_count": 3}

    def lines(*messages: JsonObject) -> Reply:
        chunks: list[JsonObject] = [
            {"model": "m", "message": {"role": "assistant", **message}, "done": False} for message in messages
        ]
        chunks.append({"model": "m", "message": {"role": "assistant", "content": ""}, **counts})
        return Reply([f"{json.dumps(chunk)}\n".encode() for chunk in chunks], headers=NDJSON)

    return [
        lines({"thinking": "Hm."}, {"tool_calls": [call]}),
        lines({"content": "It is "}, {"content": "a letter."}),
    ]


THOUGHT: Final = {"reasoning_content": "Hm."}
FAMILY: Final[dict[str, tuple[str, list[Reply], JsonObject]]] = {
    "deepseek": (CHAT, chat_loop(THOUGHT), THOUGHT),
    "githubmodels": (CHAT, chat_loop({"content": ""}), {}),
    "huggingface": (CHAT, chat_loop({"reasoning": "Hm."}), {}),
    "kimi": (CHAT, chat_loop(THOUGHT, "lookup:0"), THOUGHT),
    "mistral": (
        CHAT,
        chat_loop({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]}, "abcdef123"),
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]},
    ),
    "novita": (CHAT, chat_loop(THOUGHT), THOUGHT),
    "ollama": ("/base/api/chat", ollama_loop(), {"thinking": "Hm."}),
    "openai_compatible": (CHAT, chat_loop(THOUGHT), THOUGHT),
    "openrouter": (
        CHAT,
        chat_loop({"reasoning": "Hm.", "reasoning_details": [{"type": "reasoning.text", "text": "Hm."}]}),
        {"reasoning_details": [{"type": "reasoning.text", "text": "Hm."}]},
    ),
    "xai": (CHAT, chat_loop(THOUGHT), {}),
}
"""The path, the two answers of a tool loop, and the part of the first that goes back with the tool's result."""


@pytest.mark.parametrize("kind", FAMILY)
async def test_a_session_works_with_every_compatible_provider(server: RunningServer, kind: str) -> None:
    path, replies, kept = FAMILY[kind]
    async with ModelServer(*replies) as provider, server.connect() as wire:
        session = await wire.create(
            {"type": kind, "baseUrl": f"{provider.url}/base/", "apiKey": KEY},
            model="kimi-k3",
            streaming=True,
            tools=[{"name": "lookup", "description": "Look a word up", "skipPermission": True}],
        )
        await wire.call("session.send", {"sessionId": session, "prompt": "What is ü?"})
        call_request = await wire.event("external_tool.requested", session=session)
        await wire.call(
            "session.tools.handlePendingToolCall",
            {"sessionId": session, "requestId": call_request["data"]["requestId"], "result": "a letter"},
        )
        await wire.event("session.idle", session=session)
        events = wire.events(session)

    first, second = provider.requests
    assert {(request.method, request.path, request.headers["authorization"]) for request in (first, second)} == {
        ("POST", path, f"Bearer {KEY}")
    }
    assert [tool["function"]["name"] for tool in first.json["tools"] if tool["type"] == "function"][-1] == "lookup"
    *_, answer, result = second.json["messages"]
    assert {key: answer[key] for key in kept} == kept
    assert (result["role"], result["content"]) == ("tool", "a letter")
    assert call_request["data"]["arguments"] == {"word": "ü"}
    messages = [event["data"] for event in events if event["type"] == "assistant.message"]
    assert [message["content"] for message in messages] == ["", "It is a letter."]
    deltas = [event["data"]["deltaContent"] for event in events if event["type"] == "assistant.message_delta"]
    assert "".join(deltas) == "It is a letter."
    used = [event["data"] for event in events if event["type"] == "assistant.usage"]
    assert [(usage["inputTokens"], usage["outputTokens"]) for usage in used] == [(7, 3), (7, 3)]


@pytest.mark.parametrize("kind", FAMILY)
async def test_a_refused_key_is_an_authentication_error(server: RunningServer, kind: str) -> None:
    refusal: Any = {"error": "unauthorized"} if kind == "ollama" else {"error": {"message": f"bad key {KEY}"}}
    async with ModelServer(json_reply(refusal, status=401)) as provider, server.connect() as wire:
        session = await wire.create({"type": kind, "baseUrl": provider.url, "apiKey": KEY}, model="m")
        await wire.prompt(session)
        failed = await wire.event("session.error", session=session)

    assert (failed["data"]["errorType"], failed["data"]["statusCode"]) == ("authentication", 401)
    assert KEY not in json.dumps(failed)


async def test_the_cost_of_a_call_is_reported_if_the_provider_reports_it(server: RunningServer) -> None:
    reply = chat({"content": "Hi"}, finish="stop", usage={"prompt_tokens": 1, "completion_tokens": 1, "cost": 0.25})
    async with ModelServer(reply) as provider, server.connect() as wire:
        session = await wire.create({"type": "openrouter", "baseUrl": provider.url}, model="m", streaming=True)
        await wire.prompt(session)
        used = await wire.event("assistant.usage", session=session)

    assert used["data"]["costUsd"] == 0.25


async def test_a_compatible_server_needs_an_address(server: RunningServer) -> None:
    async with server.connect() as wire:
        error = await wire.error_of("session.create", {"provider": {"type": "openai_compatible"}, "model": "m"})

    assert "provider.baseUrl is required for provider type 'openai_compatible'" in error["message"]
