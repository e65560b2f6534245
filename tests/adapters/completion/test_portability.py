"""``jumpseat.portability``, and the same report in the answer of ``session.model.switchTo``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.adapters.golden import DATA
from tests.support.model_server import ModelServer, event_stream
from tests.support.server import JsonObject, running_server, scripted

pytestmark = pytest.mark.anyio

MESSAGES: Final[list[JsonObject]] = [
    {"role": "user", "blocks": [{"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}]},
    {
        "role": "assistant",
        "blocks": [
            {"type": "reasoning", "text": "Hm.", "provider": "anthropic", "providerData": {"signature": "x"}},
            {"type": "web_search_use", "toolUseId": "s1", "input": {"query": "q"}, "provider": "anthropic"},
            {
                "type": "web_search_result",
                "toolUseId": "s1",
                "results": [{"title": "A", "url": "https://a.example"}],
                "provider": "anthropic",
                "providerData": {"content": [{"encrypted_content": "RU4="}]},
            },
            {"type": "text", "text": "A.", "citations": [{"kind": "x", "provider": "anthropic"}]},
            {"type": "tool_use", "toolUseId": "1", "toolName": "weather"},
        ],
    },
]


async def test_the_report_names_the_fate_of_each_block_and_the_reason(tmp_path: Path) -> None:
    async with running_server(tmp_path) as ours:
        openai = {"type": "openai", "baseUrl": "http://127.0.0.1:1"}
        blind = {**openai, "modelCapabilities": {"supports": {"vision": False}}}
        there = await ours.wire.call(
            "jumpseat.portability", {"messages": MESSAGES, "provider": blind, "model": "gpt-4.1"}
        )
        home = await ours.wire.call(
            "jumpseat.portability",
            {"messages": MESSAGES, "provider": {**openai, "type": "anthropic"}, "model": "claude-sonnet-5"},
        )

    assert (there["portable"], there["provider"], there["model"]) == (False, "openai", "gpt-4.1")
    assert [(b["message"], b["block"], b["type"], b["outcome"], b.get("reason")) for b in there["blocks"]] == [
        (0, 0, "image", "dropped", "the model has no vision"),
        (1, 0, "reasoning", "dropped", "only anthropic can read its signature"),
        (1, 1, "web_search_use", "converted", "sent as text: anthropic has run the call"),
        (1, 2, "web_search_result", "converted", "sent as text: only anthropic can read its data"),
        (1, 3, "text", "converted", "sent without its 1 citation"),
        (1, 4, "tool_use", "kept", None),
    ]
    assert "cannot be sent to gpt-4.1 unchanged" in there["summary"]
    assert home["portable"] is True
    assert {block["outcome"] for block in home["blocks"]} == {"kept"}


async def test_a_switch_of_the_model_answers_with_the_report(tmp_path: Path) -> None:
    data = (DATA / "anthropic" / "web_search.sse").read_bytes()
    async with ModelServer(event_stream(data)) as server, running_server(tmp_path) as ours:
        providers = [
            {"name": "a", "type": "anthropic", "baseUrl": server.url, "apiKey": "k"},
            {"name": "b", "type": "openai", "baseUrl": server.url, "apiKey": "k"},
        ]
        created = await ours.wire.call(
            "session.create",
            {
                "providers": providers,
                "model": "a/claude-sonnet-5",
                "hostedTools": ["web_search"],
                "streaming": True,
            },
        )
        session = {"sessionId": created["sessionId"]}
        early = await ours.wire.call("session.model.switchTo", {**session, "modelId": "a/claude-opus-5"})
        await ours.wire.prompt(created["sessionId"])
        asked = await ours.wire.call("jumpseat.portability", {**session, "model": "b/gpt-4.1"})
        switched = await ours.wire.call("session.model.switchTo", {**session, "modelId": "b/gpt-4.1"})
        back = await ours.wire.call("session.model.switchTo", {**session, "modelId": "a/claude-sonnet-5"})
        nowhere = await ours.wire.call("session.model.switchTo", {**session, "modelId": "c/unknown"})

    assert early == {"modelId": "a/claude-opus-5"}
    assert switched == {"modelId": "b/gpt-4.1", "portability": asked}
    outcomes = {block["type"]: block["outcome"] for block in asked["blocks"]}
    assert outcomes["web_search_result"] == "converted"
    assert back["portability"]["portable"] is True
    assert nowhere == {"modelId": "c/unknown"}


async def test_the_report_needs_a_conversation(tmp_path: Path) -> None:
    async with running_server(tmp_path) as ours:
        error = await ours.wire.error_of("jumpseat.portability", {"provider": scripted({"text": "a"})})
    assert error["message"] == "expected either sessionId or messages"
