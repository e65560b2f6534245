"""Requests in neutral form; their wire form is recorded for every adapter."""

from __future__ import annotations

import base64
from typing import Final

from jumpseat.agent.blocks import (
    AssistantMessage,
    Citation,
    DocumentBlock,
    HostedToolResultBlock,
    HostedToolUseBlock,
    ImageBlock,
    ReasoningBlock,
    TextBlock,
    ToolMessage,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from jumpseat.agent.model import ModelRequest, ResponseFormat, ToolChoice, ToolSchema, ToolSpec

PICTURE: Final = base64.b64encode(b"picture").decode()

ADD: Final = ToolSpec(
    "add",
    "Add two numbers",
    ToolSchema.of(
        {
            "type": "object",
            "properties": {"a": {"type": "number"}, "b": {"$ref": "#/$defs/n"}},
            "required": ["a"],
            "$defs": {"n": {"type": "number"}},
        }
    ),
)
NOW: Final = ToolSpec("now", "", ToolSchema.of({}))


def _prompt(text: str) -> UserMessage:
    return UserMessage([TextBlock(text)])


def _tool_loop() -> list[UserMessage | AssistantMessage | ToolMessage]:
    return [
        _prompt("Add things"),
        AssistantMessage(
            [
                TextBlock("  First I add.\n"),
                ToolUseBlock("call:1", "add", '{"b": 2,  "a": 1}', {"b": 2, "a": 1}),
                ToolUseBlock("call_1", "now", "", {}),
                ToolUseBlock("call_3", "add", '{"a": 1,}', None),
            ]
        ),
        ToolMessage(
            [
                ToolResultBlock("call:1", "add", "3"),
                ToolResultBlock("call_1", "now", ""),
                ToolResultBlock("call_3", "add", "not JSON", is_error=True),
            ]
        ),
    ]


def _pictures() -> list[UserMessage | AssistantMessage | ToolMessage]:
    return [
        UserMessage([TextBlock("What is this?"), ImageBlock(PICTURE, "image/png", "a.png")]),
        AssistantMessage([ToolUseBlock("c1", "view", "{}", {}), ToolUseBlock("c2", "view", "{}", {})]),
        ToolMessage(
            [
                ToolResultBlock(
                    "c1", "view", "Viewed.", images=[ImageBlock(PICTURE, "image/png", "Image file at path /a.png")]
                ),
                ToolResultBlock("c2", "view", "Viewed too.", images=[ImageBlock(PICTURE, "image/jpeg")]),
            ]
        ),
        UserMessage([ImageBlock(PICTURE, "image/gif")]),
    ]


def _of_all_providers() -> list[UserMessage | AssistantMessage | ToolMessage]:
    """Build a conversation with one answer of every provider, as after several changes of model."""
    thinking = {"type": "thinking", "thinking": "signed", "signature": "U0k="}
    search = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "q"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [{"type": "web_search_result"}]}
    source = {"type": "web_search_result_location", "url": "https://a.example", "encrypted_index": "SURY"}
    return [
        _prompt("one"),
        AssistantMessage(
            [
                ReasoningBlock("signed", "anthropic", thinking),
                ReasoningBlock("", "anthropic", {"type": "redacted_thinking", "data": "RGF0"}),
                ReasoningBlock("unsigned", "anthropic"),
                HostedToolUseBlock("srv_1", "web_search", {"query": "q"}, "anthropic", search),
                HostedToolResultBlock("srv_1", "A (https://a.example)", "anthropic", False, found),
                TextBlock(
                    "Found.",
                    [
                        Citation("web_search_result_location", provider="anthropic", provider_data=source),
                        Citation("char_location", provider="anthropic", provider_data={"type": "char_location"}),
                    ],
                ),
            ]
        ),
        _prompt("two"),
        AssistantMessage(
            [
                ReasoningBlock(
                    "details",
                    "openai",
                    {"field": "reasoning", "reasoning_details": [{"type": "reasoning.text", "text": "details"}]},
                ),
                HostedToolUseBlock("h", "code_interpreter", {"code": "1"}, "other"),
                HostedToolResultBlock("h", "1", "other", is_error=True),
                TextBlock("Ran it."),
            ]
        ),
        _prompt("three"),
        AssistantMessage(
            [
                ReasoningBlock("opaque", "copilot", {"field": "reasoning_text", "reasoning_opaque": "b3A="}),
                ReasoningBlock("thought", "openai", {"field": "reasoning_content"}),
                ToolUseBlock(
                    "g1", "add", '{"a":1}', {"a": 1}, "openai", {"extra_content": {"google": {"signature": "cw=="}}}
                ),
            ]
        ),
        ToolMessage([ToolResultBlock("g1", "add", "1")]),
    ]


def _of_responses(provider: str) -> list[UserMessage | AssistantMessage | ToolMessage]:
    """Build answers of the Responses wire in the order that a session keeps: reasoning, text, calls."""

    def item(number: int, **more: object) -> dict[str, object]:
        return {"id": f"rs_{number}", "type": "reasoning", "summary": [], **more}

    search = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"query": "q"}}
    code = {"id": "ci_1", "type": "code_interpreter_call", "code": "1", "outputs": None}
    return [
        _prompt("one"),
        AssistantMessage(
            [
                ReasoningBlock(
                    "", provider, {"item": item(1, encrypted_content="RTE=", status=None), "before": "c2"}
                ),
                ReasoningBlock("two", provider, {"item": item(2, encrypted_content="RTI="), "before": "gone"}),
                ReasoningBlock("kept nowhere", provider, {"item": item(3, encrypted_content=None)}),
                ReasoningBlock("local", provider, {"item": item(4, content=[{"type": "reasoning_text"}])}),
                TextBlock("I "),
                ReasoningBlock("of another", "other", {"item": item(5, encrypted_content="RTU=")}),
                TextBlock("call."),
                ToolUseBlock("c1", "now", "", {}),
                ToolUseBlock("c2", "now", "{}", {}),
            ]
        ),
        ToolMessage([ToolResultBlock("c1", "now", "1"), ToolResultBlock("c2", "now", "2", is_error=True)]),
        AssistantMessage(
            [
                HostedToolUseBlock("ws_1", "web_search", {"query": "q"}, provider, search),
                HostedToolUseBlock("ci_1", "code_interpreter", {"code": "1"}, provider, code),
                HostedToolResultBlock("ci_1", "1", provider),
                TextBlock("Found."),
            ]
        ),
    ]


def _ragged() -> list[UserMessage | AssistantMessage | ToolMessage]:
    """Build a conversation that wires with alternating roles must repair: no user first, neighbours, blank text."""
    return [
        AssistantMessage([TextBlock("I was here first.")]),
        _prompt("context"),
        _prompt("prompt"),
        AssistantMessage([TextBlock("")]),
        AssistantMessage([TextBlock(" \n"), TextBlock("said")]),
        AssistantMessage([]),
        _prompt("   "),
        _prompt("end"),
    ]


SCHEMA: Final = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "at": {"type": "object", "properties": {"x": {"type": "number"}}}},
    "required": ["city"],
}
DOCUMENTS: Final = UserMessage(
    [
        DocumentBlock(base64.b64encode(b"%PDF").decode(), "application/pdf", "facts.pdf"),
        DocumentBlock(base64.b64encode("Grün".encode()).decode(), "text/plain", "notes.txt"),
        TextBlock("Summarise"),
    ]
)

REQUESTS: Final[dict[str, ModelRequest]] = {
    "prompt": ModelRequest("m-1", "Be brief.", [_prompt("Hi")]),
    "prompt_not_streamed": ModelRequest("m-1", "", [_prompt("Hi")], stream=False, max_output_tokens=100),
    "tool_loop": ModelRequest("m-1", "Be brief.", [*_tool_loop()], [ADD, NOW]),
    "tool_choice_required_one_at_a_time": ModelRequest(
        "m-1", "s", [_prompt("Hi")], [NOW], ToolChoice("required", parallel=False), reasoning_effort="high"
    ),
    "tool_choice_specific": ModelRequest("m-1", "s", [_prompt("Hi")], [ADD, NOW], ToolChoice("specific", "add")),
    "tool_choice_none": ModelRequest("m-1", "s", [_prompt("Hi")], [ADD], ToolChoice("none")),
    "tool_choice_auto_in_parallel": ModelRequest("m-1", "s", [_prompt("Hi")], [ADD], ToolChoice(parallel=True)),
    "pictures": ModelRequest("m-1", "s", [*_pictures()]),
    "pictures_for_a_blind_model": ModelRequest("m-1", "s", [*_pictures()], vision=False),
    "documents": ModelRequest("m-1", "s", [DOCUMENTS]),
    "of_all_providers": ModelRequest("m-1", "s", [*_of_all_providers()]),
    "of_responses": ModelRequest("gpt-5-mini", "s", [*_of_responses("openai_responses")], reasoning_summary="auto"),
    "of_copilot_responses": ModelRequest("m-1", "s", [*_of_responses("copilot_responses")]),
    "ragged": ModelRequest("m-1", "s", [*_ragged()]),
    "reasoning_effort": ModelRequest("m-1", "s", [_prompt("Hi")], reasoning_effort="high", max_output_tokens=4000),
    "reasoning_effort_claude_sonnet_5": ModelRequest(
        "claude-sonnet-5", "s", [_prompt("Hi")], reasoning_effort="low"
    ),
    "reasoning_effort_after_a_call_without": ModelRequest(
        "m-1", "s", [*_tool_loop()], [ADD], reasoning_effort="low"
    ),
    "structured": ModelRequest(
        "m-1", "s", [_prompt("Hi")], response_format=ResponseFormat("an answer", SCHEMA, "Where", strict=True)
    ),
    "structured_loosely": ModelRequest("m-1", "s", [_prompt("Hi")], response_format=ResponseFormat("a", SCHEMA)),
}
