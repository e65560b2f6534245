"""Answers with tool calls and their results, sent back to the provider as it documents."""

from __future__ import annotations

from typing import Any, Final

import pytest

from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.providers import load_adapter
from jumpseat.agent.blocks import (
    AssistantMessage,
    ImageBlock,
    Message,
    ReasoningBlock,
    TextBlock,
    ToolMessage,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from jumpseat.agent.model import ModelRequest
from tests.adapters.golden import DATA, decode_stream

ENDPOINT: Final = Endpoint("http://local")


def recorded_answer(name: str, stream: str) -> AssistantMessage:
    path = DATA / name / stream
    return decode_stream(load_adapter(name), [path.read_bytes()], lines=path.suffix == ".jsonl").completed.message


def wire(name: str, *messages: Message, model: str = "m", **fields: Any) -> list[dict[str, Any]]:
    request = ModelRequest(model, "", [*messages], **fields)
    return load_adapter(name).request(ENDPOINT, request).body["messages"]


def prompt(text: str = "p") -> UserMessage:
    return UserMessage([TextBlock(text)])


def results(answer: AssistantMessage) -> ToolMessage:
    return ToolMessage(
        [ToolResultBlock(use.id, use.name, f"{index}") for index, use in enumerate(answer.tool_uses())]
    )


def function(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def tool_result(call_id: str, content: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


ROUND_TRIPS: Final[list[tuple[str, str, str, list[dict[str, Any]]]]] = [
    (
        "deepseek",
        "deepseek-v4-flash",
        "thinking_and_parallel_tools.sse",
        [
            {
                "role": "assistant",
                "content": "Let me look.",
                "tool_calls": [
                    function("call_00_a", "get_weather", '{"city": "Rome"}'),
                    function("call_01_b", "get_weather", '{"city": "Oslo"}'),
                ],
                "reasoning_content": "Two cities.",
            },
            tool_result("call_00_a", "0"),
            tool_result("call_01_b", "1"),
        ],
    ),
    (
        "kimi",
        "kimi-k3",
        "thinking_and_tools.sse",
        [
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    function("get_weather:0", "get_weather", '{"city":"Rome"}'),
                    function("get_weather:1", "get_weather", "{}"),
                ],
                "reasoning_content": "Look it up.",
            },
            tool_result("get_weather:0", "0"),
            tool_result("get_weather:1", "1"),
        ],
    ),
    (
        "mistral",
        "mistral-medium-3-5",
        "tools_parallel_in_one_chunk.sse",
        [
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    function("3sKXImamX", "get_weather", '{"city": "Paris"}'),
                    function("22sZzWH6p", "get_weather", '{"city": "London"}'),
                ],
            },
            {**tool_result("3sKXImamX", "0"), "name": "get_weather"},
            {**tool_result("22sZzWH6p", "1"), "name": "get_weather"},
        ],
    ),
    (
        "openrouter",
        "anthropic/claude-sonnet-5",
        "comments_reasoning_and_tool.sse",
        [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [function("toolu_1", "read_file", '{"path":"a"}')],
                "reasoning_details": [
                    {
                        "type": "reasoning.text",
                        "format": "anthropic-claude-v1",
                        "index": 0,
                        "text": "I need a file.",
                        "signature": "U0k=",
                    }
                ],
            },
            tool_result("toolu_1", "0"),
        ],
    ),
    (
        "ollama",
        "qwen3",
        "tools_in_one_chunk_with_ids.jsonl",
        [
            {
                "role": "assistant",
                "content": "Looking.",
                "thinking": "Both.",
                "tool_calls": [
                    {
                        "id": "call_a1",
                        "type": "function",
                        "function": {
                            "index": 0,
                            "name": "get_weather",
                            "arguments": {"city": "Tokyo", "units": "celsius"},
                        },
                    },
                    {
                        "id": "call_b2",
                        "type": "function",
                        "function": {
                            "index": 1,
                            "name": "get_weather",
                            "arguments": {"city": "Oslo", "units": "celsius"},
                        },
                    },
                ],
            },
            {"role": "tool", "tool_name": "get_weather", "tool_call_id": "call_a1", "content": "0"},
            {"role": "tool", "tool_name": "get_weather", "tool_call_id": "call_b2", "content": "1"},
        ],
    ),
    (
        "novita",
        "deepseek/deepseek-v4-pro",
        "reasoning_and_tool.sse",
        [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [function("call_1", "now", "{}")],
                "reasoning_content": "Think.",
            },
            tool_result("call_1", "0"),
        ],
    ),
    (
        "xai",
        "grok-4.3",
        "reasoning_and_tool.sse",
        [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [function("call_41", "get_weather", '{"city":"Rome"}')],
            },
            tool_result("call_41", "0"),
        ],
    ),
]


@pytest.mark.parametrize(
    ("name", "model", "stream", "expected"), ROUND_TRIPS, ids=[round_trip[0] for round_trip in ROUND_TRIPS]
)
def test_calls_and_results_are_sent_back_as_documented(
    name: str, model: str, stream: str, expected: list[dict[str, Any]]
) -> None:
    answer = recorded_answer(name, stream)

    assert wire(name, prompt(), answer, results(answer), model=model) == [
        {"role": "user", "content": "p"},
        *expected,
    ]


@pytest.mark.parametrize(
    ("name", "model", "stream", "kept"),
    [
        ("deepseek", "deepseek-v4-flash", "thinking.sse", {"reasoning_content": "9.8 is larger."}),
        ("kimi", "kimi-k3", "thinking_and_tools.sse", {"reasoning_content": "Look it up."}),
        (
            "mistral",
            "mistral-medium-3-5",
            "thinking.sse",
            {
                "content": [
                    {
                        "type": "thinking",
                        "thinking": [{"type": "text", "text": "Okay, that works."}],
                        "signature": "c2ln",
                    },
                    {"type": "text", "text": "It works."},
                ]
            },
        ),
        ("ollama", "qwen3", "thinking.jsonl", {"thinking": None}),
        ("xai", "grok-4.3", "reasoning_and_tool.sse", {"reasoning_content": None}),
        ("huggingface", "m", "reasoning.sse", {"reasoning": None}),
        ("novita", "m", "reasoning_and_tool.sse", {"reasoning_content": None}),
    ],
)
def test_the_reasoning_of_a_finished_turn_is_sent_where_the_provider_expects_it(
    name: str, model: str, stream: str, kept: dict[str, Any]
) -> None:
    answer = recorded_answer(name, stream)
    ended = [results(answer), AssistantMessage([TextBlock("Done")])] if answer.tool_uses() else []
    sent = wire(name, prompt(), answer, *ended, prompt(), model=model)

    assert {key: sent[1].get(key) for key in kept} == kept


@pytest.mark.parametrize("name", ["deepseek", "kimi", "mistral", "ollama", "openrouter", "novita"])
def test_reasoning_of_another_provider_is_left_out(name: str) -> None:
    foreign = AssistantMessage(
        [
            ReasoningBlock(
                "secret thought",
                "other",
                {"field": "reasoning_content", "signature": "s", "reasoning_details": [{"text": "secret thought"}]},
            ),
            ToolUseBlock("c", "t", "{}", {}),
        ]
    )
    assert "secret thought" not in str(wire(name, prompt(), foreign, results(foreign), model="kimi-k3"))


@pytest.mark.parametrize(
    ("name", "model"), [("deepseek", "deepseek-v4-pro"), ("kimi", "kimi-k3"), ("kimi", "kimi-k2.6")]
)
def test_an_answer_of_another_model_gets_the_reasoning_that_the_provider_requires(name: str, model: str) -> None:
    foreign = AssistantMessage([ToolUseBlock("c", "t", "{}", {})])
    sent = wire(name, prompt(), foreign, results(foreign), model=model)
    calm = wire(name, prompt(), foreign, results(foreign), model=model, reasoning_effort="none")

    assert sent[1]["reasoning_content"] == " "
    assert ("reasoning_content" in calm[1]) == (model == "kimi-k3"), "only kimi-k3 cannot be told not to think"


def test_mistral_gets_images_of_a_tool_in_its_result_and_no_prompt_directly_after() -> None:
    answer = AssistantMessage([ToolUseBlock("toolu_01", "view", "{}", {})])
    results = ToolMessage(
        [ToolResultBlock("toolu_01", "view", "Viewed.", images=[ImageBlock("QQ==", "image/png", "a.png")])]
    )
    sent = wire("mistral", prompt(), answer, results, prompt("and now?"))
    blind = wire("mistral", prompt(), answer, results, vision=False)

    call_id = sent[1]["tool_calls"][0]["id"]
    assert (len(call_id), call_id.isalnum()) == (9, True)
    assert sent[2:] == [
        {
            "role": "tool",
            "tool_call_id": call_id,
            "name": "view",
            "content": [
                {"type": "text", "text": "Viewed."},
                {"type": "text", "text": "a.png"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}},
            ],
        },
        {"role": "assistant", "content": "(I was interrupted.)"},
        {"role": "user", "content": "and now?"},
    ]
    assert blind[2]["content"] == "Viewed."
