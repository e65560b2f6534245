"""Random logs of sessions, and the rules of each wire that no request may break."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from random import Random
from typing import Any, Final, TypeAlias

from jumpseat.agent.blocks import (
    AssistantBlock,
    AssistantMessage,
    HostedToolResultBlock,
    HostedToolUseBlock,
    JsonObject,
    ReasoningBlock,
    TextBlock,
    ToolUseBlock,
)
from jumpseat.agent.conversation.conversation import REFUSED_ALL_MEDIA, REFUSED_MEDIA, Conversation
from jumpseat.agent.model import ModelRequest, ToolSchema, ToolSpec
from jumpseat_protocol import events
from tests.agent.conversation.test_conversation import answer
from tests.support.pictures import PNG_BASE64

TEXTS: Final = ("", " ", "\n", "hello", "a <b> & ü \u2028")
IDS: Final = ("call_0", "call_1", "functions.bash:0", "a|b" * 150, "fc_" + "x" * 61, "ü id", "Ab3dEf9hI")
ARGUMENTS: Final = ("{}", '{"a": 1}', "", "not json", "[1]")
SIGNED: Final[Mapping[str, tuple[JsonObject, ...]]] = {
    "anthropic": (
        {"type": "thinking", "thinking": "t", "signature": "s"},
        {"type": "redacted_thinking", "data": "x"},
    ),
    "openai_responses": ({"item": {"id": "rs", "type": "reasoning", "summary": [], "encrypted_content": "YQ=="}},),
    "gemini": ({"thoughtSignature": "YQ=="}, {"thoughtSignature": "YQ==", "start": 0, "end": 1, "calls": 0}),
    "openai": ({"field": "reasoning_content"},),
}
TOOL: Final = ToolSpec("bash", "run", ToolSchema.of({"type": "object", "properties": {"a": {"type": "integer"}}}))


def random_request(chance: Random, model: str) -> ModelRequest:
    """Return a request for the conversation of a random log."""
    return ModelRequest(
        model,
        chance.choice(["", "Be brief."]),
        random_conversation(chance).messages(),
        tools=[TOOL] if chance.random() < 0.7 else [],
        stream=chance.random() < 0.5,
        vision=chance.random() < 0.8,
        reasoning_effort=chance.choice([None, "low", "high"]),
    )


def random_conversation(chance: Random) -> Conversation:
    """Return the conversation of a log with cut, interrupted, repeated and foreign answers."""
    conversation = Conversation()
    conversation.apply(_prompt(chance))
    for _ in range(chance.randrange(8)):
        if chance.random() < 0.6:
            message = AssistantMessage([_answer_block(chance) for _ in range(chance.randrange(5))])
            conversation.apply(answer(message))
            calls = message.tool_uses()
            for call in chance.sample(calls, len(calls)):
                if chance.random() < 0.8:
                    conversation.apply(_result(chance, call.id))
        elif chance.random() < 0.8:
            conversation.apply(_prompt(chance))
        else:
            kind = chance.choice([REFUSED_MEDIA, REFUSED_ALL_MEDIA])
            conversation.apply(events.SessionWarning(warning_type=kind, message="m"))
    conversation.apply(_prompt(chance))
    return conversation


def _prompt(chance: Random) -> events.UserMessage:
    kinds = ("image/png", "application/pdf", "text/csv", "image/bmp")
    blobs = [
        {
            "type": "blob",
            "data": chance.choice([PNG_BASE64, "AAAA", "JVBERi0xLjc="]),
            "mimeType": chance.choice(kinds),
        }
        for _ in range(chance.choice([0, 0, 0, 1, 2]))
    ]
    return events.UserMessage(content="look", message_id="m", attachments=blobs or None)


def _result(chance: Random, call_id: str) -> events.ToolExecutionComplete:
    pictures = [events.BinaryResult(data=PNG_BASE64, mime_type="image/png", type="image")] * chance.randrange(2)
    result = events.ToolResult(content=chance.choice(TEXTS), binary_results_for_llm=pictures)
    return events.ToolExecutionComplete(tool_call_id=call_id, success=chance.random() < 0.7, result=result)


def _answer_block(chance: Random) -> AssistantBlock:
    provider = chance.choice(list(SIGNED))
    match chance.randrange(8):
        case 0 | 1:
            return TextBlock(chance.choice(TEXTS))
        case 2 | 3:
            return ReasoningBlock("t", provider, chance.choice(SIGNED[provider]))
        case 4:
            return HostedToolUseBlock("h", "web_search", {"q": "x"}, "another")
        case 5:
            return HostedToolResultBlock("h", chance.choice(TEXTS), "another")
        case _:
            text = chance.choice(ARGUMENTS)
            arguments = {"{}": {}, '{"a": 1}': {"a": 1}}.get(text)
            return ToolUseBlock(chance.choice(IDS), "bash", text, arguments)


Rule: TypeAlias = Callable[[JsonObject], None]
"""Raises ``AssertionError`` for a body that the provider refuses."""


def check_chat(body: JsonObject, id_form: str = r"[\s\S]{1,40}") -> None:
    """Check that calls have short, unique ids and their results right behind them, and are of defined tools."""
    seen: set[str] = set()
    waiting: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            assert message["tool_call_id"] in waiting, "a result without its call before it"
            waiting.remove(message["tool_call_id"])
            continue
        assert waiting == [], "a call without its result behind it"
        if message["role"] == "assistant":
            waiting = [call["id"] for call in message.get("tool_calls", ())]
            assert waiting or message["content"] is not None
        else:
            assert message["content"], "an empty message"
        assert len(set(waiting)) == len(waiting)
        assert not seen.intersection(waiting), "a repeated id"
        assert all(re.fullmatch(id_form, call_id) for call_id in waiting)
        seen.update(waiting)
    assert waiting == []
    assert not seen or body.get("tools"), "calls without tools"


def check_mistral(body: JsonObject) -> None:
    """Check in addition the form of ids, and that no prompt follows a result."""
    check_chat(body, r"[A-Za-z0-9]{9}")
    roles = [message["role"] for message in body["messages"]]
    assert ("tool", "user") not in pairwise(roles)


def check_messages(body: JsonObject) -> None:
    """Check alternating roles, results in the message behind their calls, and no thinking in the last place."""
    seen: set[str] = set()
    calls: list[str] = []
    for place, message in enumerate(body["messages"]):
        content = message["content"]
        assert message["role"] == ("assistant" if place % 2 else "user")
        assert content
        assert all(part["text"].strip() for part in content if part["type"] == "text")
        results = [part["tool_use_id"] for part in content if part["type"] == "tool_result"]
        assert sorted(results) == sorted(calls)
        assert all(part["type"] == "tool_result" for part in content[: len(results)])
        calls = [part["id"] for part in content if part["type"] == "tool_use"]
        assert len({*seen, *calls}) == len(seen) + len(calls), "a repeated id"
        assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", call_id) for call_id in calls)
        assert content[-1]["type"] not in ("thinking", "redacted_thinking")
        seen.update(calls)
    assert calls == []
    assert not seen or body.get("tools"), "calls without tools"


def check_responses(body: JsonObject) -> None:
    """Check that reasoning has its following item, and each call its one result."""
    items = body["input"]
    for item, following in zip(items, [*items[1:], {"type": "nothing"}], strict=True):
        if item["type"] == "reasoning":
            assert following["type"] in ("reasoning", "function_call") or following.get("role") == "assistant"
    calls = [item["call_id"] for item in items if item["type"] == "function_call"]
    assert calls == [item["call_id"] for item in items if item["type"] == "function_call_output"]
    assert len(set(calls)) == len(calls)
    assert all(0 < len(call_id) <= 64 for call_id in calls)


def check_contents(body: JsonObject) -> None:
    """Check that results stand alone right behind their calls, and that no message is empty."""
    waiting: list[str] = []
    for place, message in enumerate(body["contents"]):
        parts = message["parts"]
        assert parts
        assert place or message["role"] == "user"
        assert [part["functionResponse"]["id"] for part in parts if "functionResponse" in part] == waiting
        waiting = [part["functionCall"]["id"] for part in parts if "functionCall" in part]
    assert waiting == []


def check_interactions(body: JsonObject) -> None:
    """Check that each call has its one result."""
    calls = [step["id"] for step in body["input"] if step["type"] == "function_call"]
    assert calls == [step["call_id"] for step in body["input"] if step["type"] == "function_result"]
    assert len(set(calls)) == len(calls)


def check_ollama(body: JsonObject) -> None:
    """Check that each call has its one result."""
    calls = [call["id"] for message in body["messages"] for call in message.get("tool_calls", ())]
    assert calls == [message["tool_call_id"] for message in body["messages"] if message["role"] == "tool"]


WIRES: Final[Mapping[str, tuple[str, Rule]]] = {
    "openai": ("gpt-5", check_chat),
    "openrouter": ("some/model", check_chat),
    "mistral": ("mistral-large-latest", check_mistral),
    "anthropic": ("claude-sonnet-4-5", check_messages),
    "openai_responses": ("gpt-5", check_responses),
    "gemini": ("gemini-3-pro", check_contents),
    "gemini_interactions": ("gemini-3-pro", check_interactions),
    "ollama": ("qwen3", check_ollama),
}
"""The wires, by the adapter that stands for each, with a model and the rules of the provider."""


def random_bodies(wire: str, count: int, body_of: Callable[[ModelRequest], JsonObject]) -> Iterator[JsonObject]:
    """Iterate over the bodies of random requests, after checking the rules of ``wire``."""
    model, check = WIRES[wire]
    for seed in range(count):
        body: dict[str, Any] = body_of(random_request(Random(seed), model))
        try:
            check(body)
        except AssertionError as error:
            error.add_note(f"wire {wire}, seed {seed}")
            raise
        yield body
