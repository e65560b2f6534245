"""Details of the Responses adapter that the recordings do not cover."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.wires.responses import ENCRYPTED, MAX_CALL_ID, ResponsesAdapter
from jumpseat.agent.blocks import (
    AssistantBlock,
    AssistantMessage,
    Message,
    ReasoningBlock,
    TextBlock,
    ToolMessage,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from jumpseat.agent.model import Completed, ModelRequest, ReasoningDelta, ToolChoice, ToolSchema, ToolSpec
from tests.adapters.conversations import REQUESTS
from tests.adapters.golden import plain_request

PROMPT = UserMessage([TextBlock("p")])


def body(request: ModelRequest, **options: Any) -> dict[str, Any]:
    return ResponsesAdapter().request(Endpoint("http://h", options=options), request).body


@pytest.mark.parametrize(
    ("model", "reasons"),
    [
        ("gpt-5", True),
        ("gpt-5.4-mini", True),
        ("gpt-5-codex", True),
        ("openai/o4-mini", True),
        ("o3", True),
        ("grok-4", True),
        ("gpt-4o", False),
        ("gpt-4.1-nano", False),
        ("gpt-50x", False),
        ("llama-o3x", False),
        ("my-deployment", False),
    ],
)
def test_encrypted_reasoning_is_requested_only_from_models_that_accept_it(model: str, reasons: bool) -> None:
    request = ModelRequest(model, "", [PROMPT])
    asking = ModelRequest(model, "", [PROMPT], reasoning_effort="low")

    assert body(request).get("include") == ([ENCRYPTED] if reasons else None)
    assert body(asking)["include"] == [ENCRYPTED]
    assert body(request, reasoning=True)["include"] == [ENCRYPTED]
    assert not {"include", "reasoning"} & set(body(asking, reasoning=False))


def test_a_summary_of_none_is_not_requested() -> None:
    request = ModelRequest("gpt-5", "", [PROMPT], reasoning_effort="high", reasoning_summary="none")

    assert body(request)["reasoning"] == {"effort": "high"}


def test_the_system_message_is_sent_once_as_instructions_or_as_an_item() -> None:
    plain = body(REQUESTS["prompt"])
    item = body(REQUESTS["prompt"], system_role="developer")

    assert plain["instructions"] == "Be brief."
    assert [item["role"] for item in plain["input"]] == ["user"]
    assert "instructions" not in item
    assert item["input"][0] == {"type": "message", "role": "developer", "content": "Be brief."}


def test_hosted_tools_come_after_those_of_the_session_and_other_fields_win() -> None:
    written = body(REQUESTS["tool_choice_none"], hosted_tools=[{"type": "web_search"}], body={"store": True})

    assert [tool.get("name", tool["type"]) for tool in written["tools"]] == ["add", "web_search"]
    assert written["store"] is True


def test_an_id_too_long_for_the_wire_is_shortened_the_same_way_for_a_call_and_its_result() -> None:
    ids = ["c" * 100, "c" * 101]
    messages: list[Message] = [
        PROMPT,
        AssistantMessage([ToolUseBlock(call_id, "t", "{}", {}) for call_id in ids]),
        ToolMessage([ToolResultBlock(call_id, "t", "r") for call_id in ids]),
    ]
    items = body(ModelRequest("m", "", messages))["input"][1:]

    assert items[0]["call_id"] == items[2]["call_id"]
    assert items[1]["call_id"] == items[3]["call_id"]
    assert len({item["call_id"] for item in items}) == 2
    assert all(len(item["call_id"]) <= MAX_CALL_ID for item in items)


def test_reasoning_without_its_following_item_is_left_out() -> None:
    item: dict[str, Any] = {"type": "reasoning", "summary": [], "encrypted_content": "YQ=="}
    cut_off = AssistantMessage([ReasoningBlock("", "openai_responses", {"item": item}), TextBlock("")])
    whole = AssistantMessage([*cut_off.blocks, TextBlock("done")])

    assert [entry["type"] for entry in body(ModelRequest("m", "", [PROMPT, cut_off]))["input"]] == ["message"]
    assert body(ModelRequest("m", "", [PROMPT, whole]))["input"][1] == item


def test_an_answer_goes_back_in_its_order() -> None:
    output: list[dict[str, Any]] = [
        {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "YQ=="},
        {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"query": "q"}},
        {"id": "rs_2", "type": "reasoning", "summary": [], "encrypted_content": "Yg=="},
        {"id": "fc_1", "type": "function_call", "call_id": "c1", "name": "t", "arguments": '{"a":  1}'},
    ]
    (done,) = ResponsesAdapter().decoder(plain_request(stream=False)).whole({"output": output})
    assert isinstance(done, Completed)
    sent = body(ModelRequest("m", "", [PROMPT, done.message]))["input"][1:]

    assert sent == [*output[:3], {key: value for key, value in output[3].items() if key != "id"}]


def test_reasoning_sent_with_its_summary_is_reported_once() -> None:
    decoder = ResponsesAdapter().decoder(plain_request(stream=True))
    at = {"item_id": "rs_1", "output_index": 0}
    texts = [
        event
        for kind, text in [("reasoning_text", "a"), ("reasoning_summary_text", "x"), ("reasoning_text", "b")]
        for event in decoder.feed(None, json.dumps({"type": f"response.{kind}.delta", **at, "delta": text}))
    ]

    assert texts == [ReasoningDelta("a"), ReasoningDelta("b")]


def test_generated_call_ids_differ_from_turn_to_turn() -> None:
    answer = {"output": [{"type": "function_call", "name": "t", "arguments": "{}"}] * 2}
    ids: set[str] = set()
    for turn in range(3):
        request = ModelRequest("m", "", [UserMessage([])] * turn, stream=False)
        (done,) = ResponsesAdapter().decoder(request).whole(answer)
        assert isinstance(done, Completed)
        ids.update(use.id for use in done.message.tool_uses())

    assert len(ids) == 6


PATCH = ToolSpec("apply_patch", "Change files.", ToolSchema.of({"type": "object", "properties": {"input": {}}}))
FREE_FORM = replace(PATCH, grammar='start: "x"')


def test_a_tool_with_a_grammar_is_free_form_and_so_are_its_calls_of_other_wires() -> None:
    calls: list[AssistantBlock] = [
        ToolUseBlock("c1", "apply_patch", '{"input": "a\\nb"}', {"input": "a\nb"}),
        ToolUseBlock("c2", "view", '{"path":"a"}', {"path": "a"}),
    ]
    results = [ToolResultBlock("c1", "apply_patch", "done"), ToolResultBlock("c2", "view", "text")]
    messages: list[Message] = [PROMPT, AssistantMessage(calls), ToolMessage(results)]
    choice = ToolChoice("specific", "apply_patch")

    free = body(ModelRequest("gpt-5", "", messages, [FREE_FORM], choice))
    plain = body(ModelRequest("o3", "", messages, [PATCH], choice))
    refused = body(ModelRequest("gpt-5", "", messages, [FREE_FORM], choice), custom_tools=False)

    grammar = {"type": "grammar", "syntax": "lark", "definition": 'start: "x"'}
    assert free["tools"] == [
        {"type": "custom", "name": "apply_patch", "description": "Change files.", "format": grammar}
    ]
    assert free["tool_choice"] == {"type": "custom", "name": "apply_patch"}
    assert free["input"][1:] == [
        {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": "a\nb"},
        {"type": "function_call", "call_id": "c2", "name": "view", "arguments": '{"path":"a"}'},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "done"},
        {"type": "function_call_output", "call_id": "c2", "output": "text"},
    ]
    for ordinary in (plain, refused):
        assert [item["type"] for item in ordinary["input"][1:]] == ["function_call"] * 2 + [
            "function_call_output"
        ] * 2
        assert [tool["type"] for tool in ordinary["tools"]] == ["function"]
        assert ordinary["tool_choice"] == {"type": "function", "name": "apply_patch"}
