"""Details of the Messages adapter that the recordings do not cover."""

from __future__ import annotations

from typing import Any

import pytest

from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.wires.messages import MessagesAdapter, messages_url
from jumpseat.agent.blocks import (
    AssistantMessage,
    Message,
    ReasoningBlock,
    TextBlock,
    ToolMessage,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from jumpseat.agent.model import ModelRequest, ToolChoice, ToolSchema, ToolSpec
from tests.adapters.conversations import REQUESTS

PROMPT = UserMessage([TextBlock("p")])


def body(request: ModelRequest, **options: Any) -> dict[str, Any]:
    return MessagesAdapter().request(Endpoint("http://h", options=options), request).body


@pytest.mark.parametrize(
    "base", ["https://h", "https://h/", "https://h/v1", "https://h/v1/", "https://h/v1/messages"]
)
def test_v1_is_never_doubled(base: str) -> None:
    assert messages_url(base) == "https://h/v1/messages"


def test_a_bearer_token_replaces_a_key() -> None:
    written = MessagesAdapter().request(Endpoint("http://h", api_key="k", bearer_token="t"), REQUESTS["prompt"])

    assert written.headers["Authorization"] == "Bearer t"
    assert "x-api-key" not in written.headers


@pytest.mark.parametrize(
    ("effort", "limit", "max_tokens", "thinking"),
    [
        (None, None, 8192, None),
        ("none", None, 8192, None),
        ("low", None, 10192, {"type": "enabled", "budget_tokens": 2000}),
        ("high", None, 20192, {"type": "enabled", "budget_tokens": 12000}),
        ("unheard of", None, 13192, {"type": "enabled", "budget_tokens": 5000}),
        ("high", 64000, 64000, {"type": "enabled", "budget_tokens": 12000}),
        ("high", 3000, 3000, {"type": "enabled", "budget_tokens": 1500}),
        ("high", 2000, 2000, None),
    ],
)
def test_the_effort_becomes_a_budget_within_the_limit(
    effort: str | None, limit: int | None, max_tokens: int, thinking: dict[str, Any] | None
) -> None:
    written = body(ModelRequest("m", "", [PROMPT], reasoning_effort=effort, max_output_tokens=limit))

    assert (written["max_tokens"], written.get("thinking")) == (max_tokens, thinking)


@pytest.mark.parametrize(
    ("model", "adaptive"),
    [
        ("claude-sonnet-5", True),
        ("claude-opus-4-6", True),
        ("claude-opus-4.7", True),
        ("claude-sonnet-4-6-20260101", True),
        ("anthropic/claude-opus-4.6", True),
        ("claude-sonnet-4-5-20250929", False),
        ("claude-sonnet-4-20250514", False),
        ("claude-3-7-sonnet-latest", False),
        ("claude-haiku-4.5", False),
        ("some-other-model-9", False),
    ],
)
def test_newer_models_get_an_effort_and_older_ones_a_budget(model: str, adaptive: bool) -> None:
    written = body(ModelRequest(model, "", [PROMPT], reasoning_effort="high"))

    assert (written["thinking"]["type"] == "adaptive") == adaptive
    assert written.get("output_config") == ({"effort": "high"} if adaptive else None)


def test_an_option_overrides_the_default_for_the_name_of_the_model() -> None:
    request = ModelRequest("claude-sonnet-5", "", [PROMPT], reasoning_effort="low")

    assert body(request, thinking="budget")["thinking"] == {"type": "enabled", "budget_tokens": 2000}


def test_thinking_is_off_with_a_forced_tool() -> None:
    request = ModelRequest("m", "", [PROMPT], tool_choice=ToolChoice("required"), reasoning_effort="low")

    assert "thinking" not in body(request)


def test_thinking_continues_in_a_tool_loop_that_began_with_thinking() -> None:
    thinking = {"type": "thinking", "thinking": "t", "signature": "s"}
    history: list[Message] = [
        PROMPT,
        AssistantMessage([ReasoningBlock("t", "anthropic", thinking), ToolUseBlock("c", "t", "{}", {})]),
        ToolMessage([ToolResultBlock("c", "t", "r")]),
    ]
    written = body(ModelRequest("m", "", history, reasoning_effort="low"))

    assert written["thinking"]["type"] == "enabled"
    assert written["messages"][1]["content"][0] == thinking


def test_cache_marks_change_no_block_and_can_be_disabled() -> None:
    thinking = {"type": "redacted_thinking", "data": "x"}
    request = ModelRequest("m", "s", [PROMPT, AssistantMessage([ReasoningBlock("", "anthropic", thinking)])])

    assert "cache_control" in str(body(request))
    assert thinking == {"type": "redacted_thinking", "data": "x"}
    assert "cache_control" not in str(body(request, prompt_caching=False))


def test_the_end_of_the_last_call_is_marked_because_the_cache_looks_back_over_few_blocks() -> None:
    history: list[Message] = [PROMPT]
    for turn in range(2):
        calls = [ToolUseBlock(f"c{turn}_{number}", "t", "{}", {}) for number in range(15)]
        history += [AssistantMessage([*calls]), ToolMessage([ToolResultBlock(call.id, "t", "r") for call in calls])]
    tools = [ToolSpec("t", "", ToolSchema.of({}))]

    before = body(ModelRequest("m", "s", history[:-2], tools=tools))["messages"]
    written = body(ModelRequest("m", "s", history, tools=tools))

    assert "cache_control" in before[-1]["content"][-1]
    marked = [index for index, message in enumerate(written["messages"]) if "cache_control" in str(message)]
    assert marked == [len(before) - 1, len(written["messages"]) - 1]
    # The wire takes at most four marks.
    assert str(written).count("cache_control") == 4


def test_settings_that_are_refused_beside_thinking_are_left_out() -> None:
    sampling = {"temperature": 0.2, "top_k": 5, "top_p": 0.5}
    thinking = body(ModelRequest("claude-opus-4-1", "", [PROMPT], reasoning_effort="low"), body=sampling)
    plain = body(ModelRequest("claude-opus-4-1", "", [PROMPT]), body=sampling)

    assert not thinking.keys() & sampling.keys()
    assert {key: plain[key] for key in sampling} == sampling


def test_calls_in_a_conversation_are_defined_in_a_request_without_tools() -> None:
    history: list[Message] = [
        PROMPT,
        AssistantMessage([ToolUseBlock("c", "gone", "{}", {})]),
        ToolMessage([ToolResultBlock("c", "gone", "r")]),
    ]
    written = body(ModelRequest("m", "", history))

    assert [tool["name"] for tool in written["tools"]] == ["gone"]
    assert written["tool_choice"] == {"type": "none"}


def test_thinking_without_anything_after_it_is_left_out() -> None:
    thinking = ReasoningBlock("t", "anthropic", {"type": "thinking", "thinking": "t", "signature": "s"})
    written = body(ModelRequest("m", "", [PROMPT, AssistantMessage([TextBlock("a"), thinking]), PROMPT]))

    assert [part["type"] for part in written["messages"][1]["content"]] == ["text"]
