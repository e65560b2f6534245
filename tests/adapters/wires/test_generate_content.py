"""Details of the two Gemini adapters that the recordings do not cover."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any, Final

import pytest
from msgspec.structs import replace

from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.models.wire_caller import WireCaller
from jumpseat.adapters.providers import load_adapter
from jumpseat.adapters.transport.http import HttpModel, HttpTransport
from jumpseat.adapters.wires.generate_content import GenerateContentAdapter
from jumpseat.adapters.wires.interactions import InteractionsAdapter
from jumpseat.agent.blocks import (
    AssistantMessage,
    HostedToolResultBlock,
    HostedToolUseBlock,
    ImageBlock,
    Message,
    ReasoningBlock,
    TextBlock,
    ToolMessage,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from jumpseat.agent.conversation.provider_blocks import answer_blocks, provider_blocks
from jumpseat.agent.model import Completed, ModelEvent, ModelRequest, TextDelta, ToolChoice, ToolSchema, ToolSpec
from jumpseat.errors import ProviderRateLimitError
from jumpseat_protocol import events
from tests.adapters.conversations import ADD, NOW, PICTURE, REQUESTS, SCHEMA
from tests.adapters.golden import DATA, recorded_message
from tests.support.cases import all_cases
from tests.support.model_server import ModelServer, event_stream, json_reply

PROMPT = UserMessage([TextBlock("p")])
KEY = "AIza-not-a-real-key-0123456789"


def body(request: ModelRequest, **options: Any) -> dict[str, Any]:
    return GenerateContentAdapter().request(Endpoint("http://h/v1", options=options), request).body


def interaction(request: ModelRequest, **options: Any) -> dict[str, Any]:
    return InteractionsAdapter().request(Endpoint("http://h/v1", options=options), request).body


def parts(*messages: Message, model: str = "gemini-3-flash") -> list[dict[str, Any]]:
    """Return the parts of the last message."""
    return body(ModelRequest(model, "", [PROMPT, *messages]))["contents"][-1]["parts"]


# --- addresses and keys -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "model", "stream", "url"),
    [
        ("https://h", "m", True, "https://h/v1beta/models/m:streamGenerateContent?alt=sse"),
        ("https://h/", "m", False, "https://h/v1beta/models/m:generateContent"),
        ("https://h/v1beta/", "m", False, "https://h/v1beta/models/m:generateContent"),
        ("https://h/gateway", "models/m", False, "https://h/gateway/models/m:generateContent"),
        ("https://h/v1", "tunedModels/mine", False, "https://h/v1/tunedModels/mine:generateContent"),
        ("https://h/v1", "m?key=x#y z", False, "https://h/v1/models/m%3Fkey%3Dx%23y%20z:generateContent"),
    ],
)
def test_the_address_names_the_model_and_the_method(base: str, model: str, stream: bool, url: str) -> None:
    written = GenerateContentAdapter().request(
        Endpoint(base, api_key=KEY), ModelRequest(model, "", [PROMPT], stream=stream)
    )

    assert written.url == url
    assert written.headers["x-goog-api-key"] == KEY


@pytest.mark.parametrize("name", ["gemini", "gemini_interactions"])
def test_the_key_is_only_in_its_header_and_a_bearer_token_replaces_it(name: str) -> None:
    keyed = load_adapter(name).request(Endpoint("https://h", api_key=KEY), REQUESTS["prompt"])
    bearer = load_adapter(name).request(Endpoint("https://h", api_key=KEY, bearer_token="t"), REQUESTS["prompt"])

    assert [value for value in keyed.headers.values() if KEY in value] == [KEY]
    assert KEY not in keyed.url + json.dumps(keyed.body)
    assert bearer.headers["Authorization"] == "Bearer t"
    assert KEY not in bearer.url + json.dumps(dict(bearer.headers))


# --- thinking -----------------------------------------------------------------------------------------------------


THINKING: Final[list[tuple[str, str | None, dict[str, Any] | None]]] = [
    ("gemini-3.1-pro-preview", None, {"includeThoughts": True}),
    ("gemini-3.1-pro-preview", "none", {"includeThoughts": False, "thinkingLevel": "low"}),
    ("gemini-3.1-pro-preview", "minimal", {"includeThoughts": True, "thinkingLevel": "low"}),
    ("gemini-3.1-pro-preview", "medium", {"includeThoughts": True, "thinkingLevel": "medium"}),
    ("gemini-3-pro-preview", "medium", {"includeThoughts": True, "thinkingLevel": "high"}),
    ("gemini-3-flash-preview", "minimal", {"includeThoughts": True, "thinkingLevel": "minimal"}),
    ("gemini-3.8-flash", "minimal", {"includeThoughts": True, "thinkingLevel": "low"}),
    ("gemini-3.5-flash-lite", "none", {"includeThoughts": False, "thinkingLevel": "minimal"}),
    ("gemini-flash-latest", "xhigh", {"includeThoughts": True, "thinkingLevel": "high"}),
    ("gemini-3.5-flash", "unheard of", {"includeThoughts": True}),
    ("gemini-2.5-pro", "none", {"includeThoughts": False, "thinkingBudget": 128}),
    ("gemini-2.5-flash", "none", {"includeThoughts": False, "thinkingBudget": 0}),
    ("gemini-2.5-flash", "medium", {"includeThoughts": True, "thinkingBudget": 8192}),
    ("gemini-2.5-flash", "unheard of", {"includeThoughts": True, "thinkingBudget": -1}),
    ("gemini-2.5-flash", None, {"includeThoughts": True}),
    ("gemini-2.5-flash-image", None, None),
    ("gemini-2.0-flash", None, None),
    ("some-model", None, None),
    ("some-model", "high", {"includeThoughts": True, "thinkingLevel": "high"}),
]


def test_thinking_is_requested_in_the_form_of_the_model_generation() -> None:
    with all_cases() as case:
        for model, effort, config in THINKING:
            with case(f"{model} {effort}"):
                written = body(ModelRequest(model, "", [PROMPT], reasoning_effort=effort))

                assert written.get("generationConfig", {}).get("thinkingConfig") == config


def test_options_override_the_form_of_thinking() -> None:
    request = ModelRequest("mine", "", [PROMPT], reasoning_effort="low", max_output_tokens=1500)
    quiet = ModelRequest("gemini-3-pro", "", [PROMPT], reasoning_summary="none")

    assert body(request, thinking="budget")["generationConfig"]["thinkingConfig"]["thinkingBudget"] == 750
    assert "thinkingConfig" not in body(request, thinking="none")["generationConfig"]
    assert body(quiet)["generationConfig"] == {"thinkingConfig": {"includeThoughts": False}}
    assert interaction(request, thinking="none")["generation_config"] == {"max_output_tokens": 1500}
    assert interaction(quiet)["generation_config"] == {"thinking_summaries": "none"}


# --- signatures ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", ["as it came", "as a session keeps it"])
@pytest.mark.parametrize(
    "file",
    [
        "plain.sse",
        "thinking.sse",
        "thinking_and_tools.sse",
        "texts_signed_in_the_middle.sse",
        "tools_parallel_signed_in_an_empty_part.sse",
    ],
)
def test_every_signature_goes_back_on_its_part(file: str, kept: str) -> None:
    recorded = (DATA / "gemini" / file).read_text(encoding="utf-8")
    came: list[dict[str, Any]] = []
    for line in recorded.splitlines():
        if line.startswith("data: "):
            for candidate in json.loads(line[6:]).get("candidates", []):
                came += candidate.get("content", {}).get("parts", [])
    message = recorded_message("gemini", file)
    if kept == "as a session keeps it":
        message = as_kept(message)

    sent = parts(message)

    assert sent == _joined([part for part in came if not part.get("thought")])


def _joined(came: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join adjacent texts without a signature."""
    joined: list[dict[str, Any]] = []
    for part in came:
        if joined and set(part) == set(joined[-1]) == {"text"}:
            joined[-1] = {"text": joined[-1]["text"] + part["text"]}
        else:
            joined.append(part)
    return joined


def as_kept(message: AssistantMessage) -> AssistantMessage:
    """Return ``message`` as read from a session's log."""
    logged = events.AssistantMessage(
        message_id="1", content=message.text(), tool_requests=[], provider_blocks=provider_blocks(message)
    )
    calls = [replace(use, provider=None, provider_data=None) for use in message.tool_uses()]
    return AssistantMessage(answer_blocks(logged, calls))


def test_a_signed_thought_goes_back_and_an_unsigned_one_does_not() -> None:
    assert parts(recorded_message("gemini", "thinking_signed.sse")) == [
        {"text": "thought", "thought": True, "thoughtSignature": "EvIBCu8BAb4+9vs="},
        {"text": "So it is."},
    ]


def test_a_signature_position_outside_the_text_is_dropped() -> None:
    marks = [
        ReasoningBlock("", "gemini", {"thoughtSignature": "YQ==", "start": 2, "end": 9}),
        ReasoningBlock("", "gemini", {"thoughtSignature": "Yg==", "start": 0, "end": 2}),
        ReasoningBlock("", "gemini", {"thoughtSignature": "Yw==", "start": 1, "end": 3}),
        ReasoningBlock("", "gemini", {"thoughtSignature": "ZA==", "start": "1", "end": None}),
    ]

    assert parts(AssistantMessage([*marks, TextBlock("short")])) == [
        {"text": "sh", "thoughtSignature": "Yg=="},
        {"text": "ort"},
    ]


@pytest.mark.parametrize(
    ("model", "signed"), [("gemini-3.1-pro-preview", True), ("gemini-pro-latest", True), ("gemini-2.5-pro", False)]
)
def test_the_first_call_of_another_model_is_marked_if_a_signature_is_required(model: str, signed: bool) -> None:
    calls = AssistantMessage([ToolUseBlock("a", "now", "{}", {}), ToolUseBlock("b", "now", "{}", {})])
    first, second = parts(calls, model=model)

    assert first.get("thoughtSignature") == ("skip_thought_signature_validator" if signed else None)
    assert "thoughtSignature" not in second


# --- whole requests -----------------------------------------------------------------------------------------------


def _conversation(provider: str, *, hosted: dict[str, Any], call: dict[str, Any]) -> list[Message]:
    return [
        UserMessage([TextBlock("Look"), ImageBlock(PICTURE, "image/png", "a.png")]),
        AssistantMessage(
            [
                ReasoningBlock("Hm.", provider, {"step": {"type": "thought", "signature": "YQ=="}, "before": "c1"}),
                HostedToolUseBlock("x", "code_execution", {}, provider, hosted),
                HostedToolResultBlock("x", "1", provider),
                TextBlock("I look."),
                ToolUseBlock("c1", "now", "{}", {}, provider, call),
                ToolUseBlock("c2", "add", '{"a":1}{"a":2}', None),
            ]
        ),
        ToolMessage(
            [
                ToolResultBlock("c1", "now", '{"json": [1]}', images=[ImageBlock(PICTURE, "image/png", "a.png")]),
                ToolResultBlock("c2", "add", "[1, 2]", is_error=True),
            ]
        ),
        UserMessage([TextBlock("Go on")]),
    ]


def test_a_whole_request_of_generate_content() -> None:
    request = ModelRequest(
        "gemini-3.5-flash",
        "Be brief.",
        _conversation(
            "gemini",
            hosted={"part": {"executableCode": {"code": "1"}}},
            call={"thoughtSignature": "Yg=="},
        ),
        [
            ADD,
            NOW,
            ToolSpec(
                "open", "Open", ToolSchema.of({"oneOf": [{"properties": {"x": {"type": ["integer", "null"]}}}]})
            ),
        ],
        ToolChoice("specific", "add"),
        reasoning_effort="low",
        max_output_tokens=900,
    )
    more: dict[str, Any] = {
        "safetySettings": [],
        "generationConfig": {"temperature": 0, "thinkingConfig": {"includeThoughts": False}},
    }

    assert body(request, hosted_tools=["google_search", {"codeExecution": {}}], body=more) == {
        "contents": [
            {
                "role": "user",
                "parts": [
                    {"text": "Look"},
                    {"text": "a.png"},
                    {"inlineData": {"mimeType": "image/png", "data": PICTURE}},
                ],
            },
            {
                "role": "model",
                "parts": [
                    {"executableCode": {"code": "1"}},
                    {"text": "I look."},
                    {"functionCall": {"id": "c1", "name": "now", "args": {}}, "thoughtSignature": "Yg=="},
                    {"functionCall": {"id": "c2", "name": "add", "args": {"a": 1}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {
                        "functionResponse": {
                            "id": "c1",
                            "name": "now",
                            "response": {"output": '{"json": [1]}'},
                            "parts": [{"inlineData": {"mimeType": "image/png", "data": PICTURE}}],
                        }
                    },
                    {"functionResponse": {"id": "c2", "name": "add", "response": {"error": "[1, 2]"}}},
                ],
            },
            {"role": "user", "parts": [{"text": "Go on"}]},
        ],
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "tools": [
            {
                "functionDeclarations": [
                    {
                        "name": "add",
                        "description": "Add two numbers",
                        "parameters": {
                            "type": "object",
                            "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
                            "required": ["a"],
                        },
                    },
                    {"name": "now", "description": ""},
                    {
                        "name": "open",
                        "description": "Open",
                        "parameters": {
                            "type": "object",
                            "properties": {"x": {"type": "integer", "nullable": True}},
                        },
                    },
                ]
            },
            {"googleSearch": {}},
            {"codeExecution": {}},
        ],
        "toolConfig": {
            "functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["add"]},
            "includeServerSideToolInvocations": True,
        },
        "generationConfig": {
            "maxOutputTokens": 900,
            "thinkingConfig": {"includeThoughts": False, "thinkingLevel": "low"},
            "temperature": 0,
        },
        "safetySettings": [],
    }


def test_schemas_are_sent_unchanged_with_an_option() -> None:
    written = body(ModelRequest("m", "", [PROMPT], [ADD, NOW]), json_schema=True)
    structured = body(REQUESTS["structured"], json_schema=True)

    assert written["tools"] == [
        {
            "functionDeclarations": [
                {"name": "add", "description": "Add two numbers", "parametersJsonSchema": ADD.parameters},
                {"name": "now", "description": ""},
            ]
        }
    ]
    assert structured["generationConfig"]["responseJsonSchema"] == SCHEMA


def test_a_whole_request_of_interactions() -> None:
    hosted = {"type": "code_execution_call", "id": "x", "arguments": {"code": "1"}}
    request = ModelRequest(
        "gemini-3.5-flash",
        "Be brief.",
        _conversation("gemini_interactions", hosted=hosted, call={"signature": "Yg=="}),
        [ADD],
        ToolChoice("required"),
        reasoning_effort="low",
        stream=False,
    )
    more = {"generation_config": {"temperature": 0}}

    assert interaction(request, hosted_tools=["google_search", {"type": "url_context"}], body=more) == {
        "model": "gemini-3.5-flash",
        "input": [
            {
                "type": "user_input",
                "content": [
                    {"type": "text", "text": "Look"},
                    {"type": "text", "text": "a.png"},
                    {"type": "image", "data": PICTURE, "mime_type": "image/png"},
                ],
            },
            hosted,
            {"type": "model_output", "content": [{"type": "text", "text": "The tool returned: 1"}]},
            {"type": "model_output", "content": [{"type": "text", "text": "I look."}]},
            {"type": "thought", "signature": "YQ=="},
            {
                "type": "function_call",
                "id": "c1",
                "name": "now",
                "arguments": {},
                "signature": "Yg==",
            },
            {"type": "function_call", "id": "c2", "name": "add", "arguments": {"a": 1}},
            {
                "type": "function_result",
                "call_id": "c1",
                "name": "now",
                "result": [
                    {"type": "text", "text": '{"json": [1]}'},
                    {"type": "text", "text": "a.png"},
                    {"type": "image", "data": PICTURE, "mime_type": "image/png"},
                ],
            },
            {
                "type": "function_result",
                "call_id": "c2",
                "name": "add",
                "result": [{"type": "text", "text": "[1, 2]"}],
                "is_error": True,
            },
            {"type": "user_input", "content": [{"type": "text", "text": "Go on"}]},
        ],
        "system_instruction": "Be brief.",
        "tools": [
            {
                "type": "function",
                "name": "add",
                "description": "Add two numbers",
                "parameters": {
                    "type": "object",
                    "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
                    "required": ["a"],
                },
            },
            {"type": "google_search"},
            {"type": "url_context"},
        ],
        "generation_config": {
            "thinking_level": "low",
            "thinking_summaries": "auto",
            "tool_choice": "any",
            "temperature": 0,
        },
        "stream": False,
        "store": False,
    }


@pytest.mark.parametrize("file", ["thinking_and_tools.sse", "google_search.sse", "tools_signed_with_one_id.sse"])
def test_steps_go_back_unchanged(file: str) -> None:
    sent = interaction(ModelRequest("m", "", [PROMPT, recorded_message("gemini_interactions", file)]))["input"][1:]

    assert sent == STEPS[file]


STEPS: dict[str, Any] = {
    "thinking_and_tools.sse": [
        {"type": "thought", "signature": "EvIBCu8BAb4+9vs=", "summary": [{"type": "text", "text": "Two."}]},
        {"type": "function_call", "id": "a1", "name": "weather", "arguments": {"location": "Köln"}},
        {"type": "function_call", "id": "a2", "name": "now", "arguments": {}},
    ],
    "google_search.sse": [
        {
            "type": "google_search_call",
            "id": "s1",
            "arguments": {"queries": ["wetter köln"]},
            "signature": "EvIBCu8BAb4+9vs=",
        },
        {
            "type": "google_search_result",
            "call_id": "s1",
            "result": [{"search_suggestions": "<div/>"}],
            "is_error": False,
            "signature": "CiQBjz1rXw==",
        },
        {"type": "model_output", "content": [{"type": "text", "text": "Köln liegt am Rhein. 🌧 Es regnet."}]},
    ],
    "tools_signed_with_one_id.sse": [
        {
            "type": "function_call",
            "id": "c",
            "name": "run",
            "arguments": {"cmd": "ls"},
            "signature": "EvIBCu8BAb4+9vs=",
        },
        {
            "type": "function_call",
            "id": "call_65cd16cdd661100af15fd28d",
            "name": "run",
            "arguments": {"cmd": "pwd"},
        },
        {
            "type": "function_call",
            "id": "call_b1fa6969ddcea7fe742fcbb8",
            "name": "run",
            "arguments": {"cmd": "id"},
        },
    ],
}


# --- over HTTP ----------------------------------------------------------------------------------------------------


@pytest.fixture
async def transport() -> AsyncGenerator[HttpTransport]:
    async with HttpTransport() as transport:
        yield transport


async def events_of(server: ModelServer, transport: HttpTransport, *, stream: bool = True) -> list[ModelEvent]:
    model = HttpModel(WireCaller(load_adapter("gemini"), Endpoint(server.url, api_key=KEY)), transport)
    async with model.stream(ModelRequest("gemini-3.5-flash", "", [PROMPT], stream=stream)) as stream_of_events:
        return [event async for event in stream_of_events]


CHUNKS = [
    {"candidates": [{"content": {"parts": [{"text": "Hel"}]}}]},
    {"candidates": [{"content": {"parts": [{"text": "lo"}]}, "finishReason": "STOP"}]},
]


@pytest.mark.anyio
async def test_a_stream_sent_as_one_array_is_decoded_as_a_stream(transport: HttpTransport) -> None:
    done = Completed(AssistantMessage([TextBlock("Hello")]), "end_turn")
    async with ModelServer(json_reply(CHUNKS), json_reply(CHUNKS)) as server:
        assert await events_of(server, transport) == [TextDelta("Hel"), TextDelta("lo"), done]
        assert await events_of(server, transport, stream=False) == [done]


@pytest.mark.anyio
@pytest.mark.parametrize("status", [200, 429])
async def test_an_error_in_an_array_is_an_error_without_the_key(transport: HttpTransport, status: int) -> None:
    error = {"code": 429, "message": f"Slow down, {KEY}", "status": "RESOURCE_EXHAUSTED"}
    async with ModelServer(json_reply([{"error": error}], status=status)) as server:
        with pytest.raises(ProviderRateLimitError, match=r"Slow down, \[redacted\]") as caught:
            await events_of(server, transport)

    assert caught.value.code == "RESOURCE_EXHAUSTED"


@pytest.mark.anyio
async def test_two_concurrent_streams_do_not_mix(transport: HttpTransport) -> None:
    frames = [b"data: %s\r\n\r\n" % json.dumps(chunk).encode() for chunk in CHUNKS]
    async with ModelServer(event_stream(*frames), event_stream(*frames)) as server:
        model = HttpModel(WireCaller(load_adapter("gemini"), Endpoint(server.url)), transport)
        request = ModelRequest("m", "", [PROMPT])
        async with model.stream(request) as one, model.stream(request) as other:
            pairs = [pair async for pair in _together(one, other)]

    assert all(first == second for first, second in pairs)
    assert len(pairs) == 3


async def _together(first: Any, second: Any) -> AsyncGenerator[tuple[ModelEvent, ModelEvent]]:
    async for event in first:
        yield event, await anext(second)
