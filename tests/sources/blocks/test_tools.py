"""The translated samples of the document "Tools" run as they stand, as a library call and with a client."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

import jumpseat as llm
from jumpseat_client import connect_stdio
from tests.adapters.golden import DATA
from tests.sources.blocks import tools as samples
from tests.support.forked import executable
from tests.support.model_server import ModelServer, event_stream, json_reply

pytestmark = pytest.mark.anyio

KINDS: Final = ("library", "client")
MESSAGES: Final = [llm.Message(role="user", content="What is the weather in Bonn?")]


def claude(*content: dict[str, Any], stop: str = "end_turn") -> Any:
    usage = {"input_tokens": 10, "output_tokens": 5}
    return json_reply(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": content,
            "stop_reason": stop,
            "usage": usage,
        }
    )


@asynccontextmanager
async def provider_of(kind: str, server: ModelServer, home: Path) -> AsyncGenerator[samples.Provider]:
    """Open the provider of the samples, with Anthropic's API at ``server``."""
    environ = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": server.url, "PATH": os.environ["PATH"]}
    if kind == "library":
        async with llm.open_models(home=home, environ={**environ, "HOME": str(home)}) as models:
            yield models
    else:
        env = {**environ, "HOME": str(home), "COPILOT_HOME": str(home)}
        async with connect_stdio([str(executable())], env=env) as client:
            yield client


@pytest.mark.parametrize("kind", KINDS)
async def test_the_results_of_a_search_are_in_the_response(tmp_path: Path, kind: str) -> None:
    found = {
        "type": "web_search_result",
        "url": "https://weather.example",
        "page_age": "1 day",
        **samples.ANTHROPIC_WEB_SEARCH_RESPONSE["content"][0],
    }
    reply = claude(
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "weather Bonn"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [found]},
        {"type": "text", "text": "Rain."},
    )
    async with ModelServer(reply) as server, provider_of(kind, server, tmp_path) as provider:
        results = await samples.server_side_tools(provider, samples.quick_start_built_in_tools(MESSAGES))

    expected = llm.SearchResult(title="Result Title", url="https://weather.example", page_age="1 day")
    assert results == [expected]
    request = server.requests[0].json
    assert [tool["type"] for tool in request["tools"]] == ["web_search_20250305", "bash_20250124"]


@pytest.mark.parametrize("kind", KINDS)
async def test_the_result_of_a_custom_tool_goes_back_to_the_model(tmp_path: Path, kind: str) -> None:
    call = {"type": "tool_use", "id": "t1", "name": "get_weather", "input": {"location": "Bonn"}}
    replies = claude(call, stop="tool_use"), claude({"type": "text", "text": "It rains in Bonn."})
    executed: list[tuple[str | None, dict[str, Any] | None]] = []

    def execute(name: str | None, given: dict[str, Any] | None) -> str:
        executed.append((name, given))
        return "rain"

    async with ModelServer(*replies) as server, provider_of(kind, server, tmp_path) as provider:
        request = llm.CompleteParams(
            model="claude-sonnet-4-5",
            messages=MESSAGES,
            tools=[samples.basic_custom_tool()],
            tool_choice=samples.tool_choice_specific(),
        )
        response = await samples.client_side_tools(provider, request, execute)

    assert response is not None
    assert (response.text, executed) == ("It rains in Bonn.", [("get_weather", {"location": "Bonn"})])
    first, second = (request.json for request in server.requests)
    assert first["tool_choice"] == {"type": "tool", "name": "get_weather"}
    assert second["messages"][1]["content"] == [call]
    assert second["messages"][2]["content"][0]["tool_use_id"] == "t1"


@pytest.mark.parametrize("kind", KINDS)
async def test_tool_calls_stream_as_deltas_and_as_complete_blocks(tmp_path: Path, kind: str) -> None:
    recording = event_stream((DATA / "anthropic" / "tools.sse").read_bytes())
    blocks: list[llm.Block] = []
    async with ModelServer(recording) as server, provider_of(kind, server, tmp_path) as provider:
        request = llm.CompleteParams(model="claude-sonnet-4-5", messages=MESSAGES, tools=[samples.tool_structure()])
        inputs = await samples.streaming_tool_execution(provider, request, blocks.append)

    assert inputs == {"toolu_1": 'weather {"city": "London"}', "toolu_2": "now "}
    assert [(block.get_tool_name(), block.get_tool_input()) for block in blocks] == [
        ("weather", {"city": "London"}),
        ("now", {}),
    ]


def test_tools_have_the_form_of_function_calling_and_know_the_side_that_runs_them() -> None:
    tools = [samples.web_search(), samples.text_editor(), samples.bash(), samples.quick_start_custom_tools()]
    assert {tool.type for tool in tools} == {"function"}
    assert [tool.execution_side for tool in tools] == ["provider", "client", "client", "client"]
    portable = [*samples.portable_built_in_tools(), *samples.portable_custom_tools(tools[3])]
    assert [tool.is_portable() for tool in portable] == [True, True, True]
    assert [tool.is_portable() for tool in samples.non_portable_tools()] == [False]
    assert json.loads(json.dumps(tools[3].wire()))["function"]["parameters"]["required"] == ["location"]


def test_the_four_modes_of_the_tool_choice() -> None:
    choices = [samples.tool_choice_required(), samples.tool_choice_none(), samples.tool_choice_specific()]
    assert [choice.wire() for choice in choices] == [
        {"mode": "required"},
        {"mode": "none"},
        {"mode": "specific", "toolName": "get_weather"},
    ]
    auto = samples.tool_choice_auto(samples.web_search()).tool_choice
    assert auto is not None
    assert auto.mode == "auto"


def test_a_custom_tool_with_an_invalid_name_or_schema_is_an_error() -> None:
    assert llm.new_custom_tool("a", "A", samples.parameters_schema()).function.name == "a"
    cases: list[tuple[Any, Any, Any, str]] = [
        ("bad name!", "A", None, "tool name 'bad name!': expected 1 to 64 letters, digits, '_' and '-'"),
        ("", "A", None, "tool name ''"),
        ("a", " ", None, "tool 'a': expected a description"),
        ("a", "A", {"type": "array"}, "tool 'a': parameters.type: expected an object schema, got type 'array'"),
        (
            "a",
            "A",
            {"type": "object", "properties": {"b": {"type": "array", "items": {"type": "strnig"}}}},
            "parameters.properties.b.items.type: unknown type 'strnig'",
        ),
        ("a", "A", {"type": "object", "required": "b"}, "parameters.required: expected an array of strings"),
        (7, "A", None, "tool name 7"),
        ("a", None, None, "tool 'a': expected a description"),
        ("a", "A", {"default": {1, 2}}, "parameters: the schema cannot be written as JSON"),
    ]
    for name, description, schema, expected in cases:
        with pytest.raises(ValueError, match="tool") as caught:
            llm.new_custom_tool(name, description, schema)
        assert expected in str(caught.value)


def test_blocks_of_a_provider_are_found_before_a_switch(caplog: pytest.LogCaptureFixture) -> None:
    block = samples.provider_data_preservation()
    turn: list[llm.Block] = [llm.TextBlock(text="a"), block]
    with caplog.at_level(logging.WARNING):
        samples.check_before_switching_providers(turn, "anthropic")
        assert caplog.records == []
        samples.check_before_switching_providers(turn, "openai")
    (record,) = caplog.records
    assert record.getMessage().endswith("block_type=web_search_result provider=anthropic")
    assert [item.is_portable() for item in turn] == [True, False]
    assert block.is_portable("anthropic")
