"""Trying the functions of an adapter before the first request."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.declared.catalogue import AdapterCatalogue
from jumpseat.adapters.declared.dry_run import DryRun, dry_run
from jumpseat.adapters.declared.pipeline import DeclaredCaller
from jumpseat.adapters.declared.sample_answers import ARGUMENTS, TEXT, TOOL, answers_in, format_of
from jumpseat.adapters.providers import load_adapter
from jumpseat.adapters.utilities import clean_streamed_data
from jumpseat.agent.model import Completed, ModelEvent, ModelRequest
from jumpseat.declared.env import EnvResolver
from tests.sources.adapters import openai_guide, parse_extra, settings, tools
from tests.support.cases import all_cases

pytestmark = pytest.mark.anyio

CHAT = "https://api.example.com/v1/chat/completions"


async def result_of(adapter: dict[str, Any], *, vision: bool = True) -> DryRun:
    known = AdapterCatalogue({}).register({**adapter, "name": "mine"})
    # Nothing may be looked up: the environment is empty.
    caller = DeclaredCaller(known.declaration, known.wire, EnvResolver({}), {}, Endpoint(""), kind=known.kind)
    return await dry_run(caller, "m", vision=vision)


async def problems(adapter: dict[str, Any]) -> list[str]:
    return [problem.text for problem in (await result_of(adapter)).problems]


def line_of(function: Callable[..., Any], offset: int = 0) -> str:
    return f"test_dry_run.py:{function.__code__.co_firstlineno + offset}"


@pytest.mark.parametrize(
    "adapter", ["openai", "openai_responses", "anthropic", "gemini", "ollama", "mistral", "kimi"]
)
@pytest.mark.parametrize("stream", [True, False])
def test_the_invented_answers_are_those_of_their_format(adapter: str, stream: bool) -> None:
    wire = load_adapter(adapter)
    name = format_of(wire, "")
    assert name is not None
    for answer in answers_in(name, stream=stream, usage=True):
        decoder = wire.decoder(ModelRequest("m", "", []))
        events: list[ModelEvent] = []
        if answer.body is not None:
            events += decoder.whole(answer.body)
        for frame in answer.frames:
            events += decoder.feed(*frame)
        if not isinstance(events[-1], Completed):
            events += decoder.finish()
        completed = events[-1]
        assert isinstance(completed, Completed)
        assert completed.usage is not None
        if answer.calls:
            assert [(use.name, use.arguments) for use in completed.message.tool_uses()] == [(TOOL, ARGUMENTS)]
        else:
            assert completed.message.text() == TEXT


def test_the_format_of_a_known_url_is_recognised() -> None:
    formats = {
        CHAT: "chat completions",
        "https://x.example/v1/responses": "Responses",
        "https://x.example/v1/messages": "Anthropic messages",
        "https://x.example/v1beta/models/m:streamGenerateContent?alt=sse": "Gemini",
        "http://localhost:11434/api/chat": "Ollama",
        "https://x.example/ask": None,
    }
    assert {url: format_of(None, url) for url in formats} == formats


async def test_adapters_without_bugs_pass() -> None:
    for sample in (parse_extra, settings, tools):
        assert await result_of(vars(sample)["ADAPTER"]) == DryRun()
    without_tools = await result_of(vars(openai_guide)["ADAPTER"])
    assert without_tools.problems == ()
    assert without_tools.warning.startswith("Tools are not sent to the model: add the handler build_tools")


async def test_the_handler_its_line_and_the_expectation_are_named() -> None:
    def raises(self: Any, data: Any) -> Any:
        return json.loads(data)["text"]

    def returns_text(data: Any) -> Any:
        return "Ready."

    def finds_nothing(data: Any) -> Any:
        return {"status": "success", "output": {"content": ""}}

    def collects_nothing(self: Any, data: Any, tools: list[Any]) -> Any:
        delta = json.loads(data[5:])["choices"][0]["delta"]
        return {"status": "success", "output": {"content": delta.get("content") or ""}}

    bugs = {
        raises: f"its handler parse_chat failed (JSONDecodeError at {line_of(raises, 1)}): Expecting value: line 1"
        " column 1 (char 0), on a stream of chat completions that says 'Ready.'",
        returns_text: "its handler parse_chat must return {status, output}, got a string"
        f" ({line_of(returns_text)}), on a stream of chat completions that says 'Ready.'",
        finds_nothing: f"its handler parse_chat ({line_of(finds_nothing)}) must find the text 'Ready.' in a stream"
        " of chat completions that says 'Ready.', found ''",
        collects_nothing: f"its handler parse_chat ({line_of(collects_nothing)}) must find the calls get_weather in"
        " a stream of chat completions that calls get_weather, found none",
    }
    with all_cases() as case:
        for parse_chat, expected in bugs.items():
            with case(parse_chat.__name__):
                assert await problems({"url": CHAT, "handlers": {"parse_chat": parse_chat}}) == [expected]


def _broken(*_: Any) -> Any:
    raise KeyError("x")


async def test_every_handler_is_tried() -> None:
    tried: dict[str, dict[str, Any]] = {
        "setup": {},
        "on_exit": {},
        "teardown": {},
        "build_parameters": {},
        "build_messages": {},
        "build_tools": {},
        "build_body": {},
        "build_structured_output": {},
        "parse_chat": {},
        "parse_inline": {},
        "parse_tokens": {},
        "format_response": {},
        "format_calls": {"parse_chat": vars(tools)["parse_chat"]},
    }
    with all_cases() as case:
        for name, others in tried.items():
            with case(name):
                adapter = {"url": CHAT} if others else {"extends": "openai"}
                found = await problems({**adapter, "handlers": {**others, name: _broken}})
                assert any(f"its handler {name} failed (KeyError at test_dry_run.py:" in text for text in found)


async def test_the_conversation_has_an_image_for_models_with_vision() -> None:
    def build_messages(messages: list[Any]) -> Any:
        return {"images": [message["context"]["file"] for message in messages if "context" in message]}

    adapter: dict[str, Any] = {
        "url": "https://x.example/ask",
        "opts": {"tools": False},
        "handlers": {"build_messages": build_messages, "parse_chat": vars(tools)["parse_chat"]},
        "samples": [{"stream": 'data: {"choices": [{"delta": {"content": "Hi"}}]}', "text": "Hi"}],
    }

    assert await result_of(adapter, vision=False) == DryRun()
    assert await problems(adapter) == [
        f"its handler build_messages failed (KeyError at {line_of(build_messages, 1)}): 'file', on an invented"
        " conversation"
    ]


async def test_functions_of_the_schema_are_tried() -> None:
    def validate(n: int) -> tuple[bool, str]:
        return n < 5, "Must be below 5"

    heat = {"type": "number", "default": 9, "validate": validate}
    adapter = {"extends": "openai", "schema": {"heat": heat}}
    assert await problems(adapter) == ["the default of setting 'heat': Must be below 5"]


async def test_an_adapter_brings_answers_in_its_own_format() -> None:
    def parse_chat(data: Any) -> Any:
        said = json.loads(clean_streamed_data(data))["say"]
        return {"status": "success", "output": {"content": said}}

    adapter: dict[str, Any] = {
        "url": "https://x.example/ask",
        "opts": {"tools": False},
        "handlers": {"parse_chat": parse_chat},
    }
    samples: list[dict[str, Any]] = [
        {"stream": 'data: {"say": "Hel"}\n\ndata: {"say": "lo"}\n', "text": "Hello"},
        {"body": {"say": "Hello"}, "text": "Hello"},
        {"body": '{"say": "Bye"}'},
    ]

    assert "parse_chat was not run" in (await result_of(adapter)).untried
    assert await result_of({**adapter, "samples": samples}) == DryRun()
    wrong = {**adapter, "samples": [{"body": {"say": "Hello"}, "text": "Goodbye"}]}
    assert await problems(wrong) == [
        f"its handler parse_chat ({line_of(parse_chat)}) must find the text 'Goodbye' in samples[0], found 'Hello'"
    ]
