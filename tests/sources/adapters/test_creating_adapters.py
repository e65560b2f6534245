"""Run the samples of "Creating Adapters" against a provider on loopback."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.declared.catalogue import AdapterCatalogue
from jumpseat.adapters.declared.declaration import read_declaration
from jumpseat.adapters.declared.pipeline import DeclaredCaller
from jumpseat.adapters.transport.http import HttpModel, HttpTransport
from jumpseat.agent.blocks import TextBlock, UserMessage
from jumpseat.agent.model import Completed, ModelRequest
from jumpseat.declared.env import EnvResolver
from jumpseat.errors import AdapterError
from tests.sources.adapters import (
    formats,
    gemini_env,
    inline,
    interface,
    openai_guide,
    parse_chat_steps,
    parse_extra,
    settings,
    tools,
)
from tests.support.model_server import ModelServer, Reply, event_stream, json_reply
from tests.support.provided import answer_of_new_session, error_of_new_session
from tests.support.server import running_server

pytestmark = pytest.mark.anyio

KEY: Final = "the-key-of-openai"


def sample(module: ModuleType, name: str) -> Any:
    """Return a sample, whose types are not checked."""
    return getattr(module, name)


def chunk(delta: Mapping[str, Any], finish_reason: str | None = None) -> bytes:
    """Return an event of OpenAI's stream as in line 250 of the document."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    body = {
        "id": "chatcmpl-90DdmqMKOKpqFemxX0OhTVdH042gu",
        "object": "chat.completion.chunk",
        "created": 1709839462,
        "model": "gpt-4-0125-preview",
        "system_fingerprint": "fp_70b2088885",
        "choices": [choice],
    }
    return f"data: {json.dumps(body)}\n\n".encode()


def stream(*deltas: Mapping[str, Any]) -> Reply:
    return event_stream(*map(chunk, deltas), b"data: [DONE]\n\n")


# Lines 249 to 263.
TWO_WORDS: Final = stream(
    {"role": "assistant", "content": ""}, {"content": "Programming"}, {"content": " language"}
)

INCORRECT_KEY: Final = {
    "error": {
        "message": "Incorrect API key provided: 1sk-F18b****************************************XdwS. You can find"
        " your API key at https://platform.openai.com/account/api-keys.",
        "type": "invalid_request_error",
        "param": None,
        "code": "invalid_api_key",
    }
}
"""The body of line 477."""


def install(folder: Path, module: ModuleType, url: str) -> str:
    """Copy a sample into the home folder, with the address of the loopback provider, and return its name."""
    adapters = folder / "home" / "adapters"
    adapters.mkdir(parents=True, exist_ok=True)
    text = inspect.getsource(module)
    for host in (
        "https://api.openai.com",
        "https://generativelanguage.googleapis.com",
        "https://api.deepseek.com",
        "https://api.githubcopilot.com",
        "https://api.example.com",
    ):
        text = text.replace(host, url)
    name = module.__name__.rpartition(".")[2]
    (adapters / f"{name}.py").write_text(text)
    return name


async def test_the_fields_of_the_interface(tmp_path: Path) -> None:
    async with ModelServer(json_reply({"said": "Hello."})) as model:
        install(tmp_path, interface, model.url)
        async with running_server(tmp_path) as server:
            assert await answer_of_new_session(server) == "blue: Hello."

    (request,) = model.requests
    assert (request.path, request.headers["x-team"], request.headers["x-raw"]) == ("/chat", "blue", "blue")
    assert (request.json["team"], request.json["seed"]) == ("blue", 7)
    assert [message["role"] for message in request.json["messages"]] == ["system", "person"]


async def test_the_openai_adapter_of_the_guide(tmp_path: Path) -> None:
    async with ModelServer(TWO_WORDS, json_reply(INCORRECT_KEY, status=401)) as model:
        install(tmp_path, openai_guide, model.url)
        async with running_server(tmp_path, env={"OPENAI_API_KEY": KEY}) as server:
            model_name = "openai_guide/gpt-4-0125-preview"
            assert await answer_of_new_session(server, model=model_name) == "Programming language"
            error = await error_of_new_session(server, model=model_name)
            log = server.stderr

    first = model.requests[0]
    assert (first.path, first.headers["authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
    assert (first.json["model"], first.json["stream"]) == ("gpt-4-0125-preview", True)
    assert first.json["messages"][-1]["role"] == "user"
    assert "Incorrect API key provided" in error
    assert "Error: {" in log
    assert '"code": "invalid_api_key"' in log


async def test_each_step_of_parse_chat() -> None:
    def adapter(parse_chat: Any, url: str) -> HttpModel:
        raw = {"name": "guide", "url": url, "handlers": {"response": {"parse_chat": parse_chat}}}
        caller = DeclaredCaller(
            read_declaration(raw, where="guide"), None, EnvResolver(os.environ), {}, Endpoint("")
        )
        return HttpModel(caller, transport)

    async with ModelServer(*[TWO_WORDS] * 5) as model, HttpTransport() as transport:
        for step in sample(parse_chat_steps, "INCOMPLETE"):
            with pytest.raises(
                AdapterError,
                match=r"must return \{status, output\} for at least one part of the response, got nothing",
            ):
                await said(adapter(step, model.url))
        assert await said(adapter(sample(parse_chat_steps, "COMPLETE"), model.url)) == "Programming language"


async def said(model: HttpModel) -> str:
    """Return the text of the model's answer."""
    request = ModelRequest("m", "", [UserMessage([TextBlock("Explain Ruby in two words")])])
    async with model.stream(request) as events:
        completed = [event async for event in events][-1]
    assert isinstance(completed, Completed)
    return completed.message.text()


async def test_the_environment_variables_of_gemini(tmp_path: Path) -> None:
    part = {"candidates": [{"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"}]}
    async with ModelServer(event_stream(f"data: {json.dumps(part)}\n\n".encode())) as model:
        name = install(tmp_path, gemini_env, model.url)
        async with running_server(tmp_path, env={"GEMINI_API_KEY": KEY}) as server:
            assert await answer_of_new_session(server, model=f"{name}/gemini-2.0-flash") == "Hi"
            described = (await server.wire.call("jumpseat.adapters.get", {"name": name}))["adapter"]

    expected = f"/v1beta/models/gemini-2.0-flash:streamGenerateContent?alt=sse&key={KEY}"
    assert model.requests[0].path == expected
    sources = {entry["name"]: (entry["source"], entry.get("detail")) for entry in described["env"]}
    assert sources["api_key"] == ("variable", "GEMINI_API_KEY")
    assert sources["model"] == ("path", "schema.model.default")


@pytest.mark.parametrize("form", sample(gemini_env, "FORMS"))
async def test_each_form_of_an_environment_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    program = tmp_path / "op"
    program.write_text('#!/bin/sh\necho "key of $2"\n')
    program.chmod(0o755)
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "GEMINI_API_KEY": KEY}
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    known = AdapterCatalogue(
        {"mine": {**sample(gemini_env, "ADAPTER"), "env": sample(gemini_env, "FORMS")[form]}}
    ).get("mine")
    caller = DeclaredCaller(known.declaration, None, EnvResolver(environ), {}, Endpoint(""))
    view_values = await caller.resolver.resolve(
        "adapter 'mine'",
        known.declaration.env,
        lambda path: "gemini-2.0-flash" if path == "schema.model.default" else None,
        object(),
    )

    assert {name: view_values.values.get(name) for name in sample(gemini_env, "FORMS")[form]} == {
        "command": {"api_key": "key of op://personal/Gemini_API/credential"},
        "variable": {"api_key": KEY},
        "function": {"api_key": KEY},
        "path": {"model": "gemini-2.0-flash"},
        "text": {"api_key": "the-plain-key"},
    }[form]


async def test_parse_extra_reads_reasoning(tmp_path: Path) -> None:
    reply = stream(
        {"role": "assistant", "content": "", "reasoning_content": "Let me "},
        {"content": "", "reasoning_content": "think."},
        {"content": "Ruby."},
    )
    async with ModelServer(reply) as model:
        name = install(tmp_path, parse_extra, model.url)
        async with running_server(tmp_path) as server:
            wire = server.wire
            session = (await wire.call("session.create", {"model": f"{name}/deepseek-reasoner"}))["sessionId"]
            answer = await wire.call("session.sendAndWait", {"sessionId": session, "prompt": "hi"})

    data = answer["response"]["data"]
    assert (data["content"], data["reasoningText"]) == ("Ruby.", "Let me think.")


async def test_the_settings_of_the_schema(tmp_path: Path) -> None:
    async with ModelServer() as model:
        name = install(tmp_path, settings, model.url)
        async with running_server(tmp_path) as server:
            described = (await server.wire.call("jumpseat.adapters.get", {"name": name}))["adapter"]["settings"]
            bodies: list[dict[str, Any]] = []
            for chosen in ("gpt-4o-2024-08-06", "o1-2024-12-17"):
                model.replies.append(TWO_WORDS)
                assert await answer_of_new_session(server, model=f"{name}/{chosen}") == "Programming language"
                bodies.append(model.requests[-1].json)
            wrong = {"model": f"{name}/gpt-4o-2024-08-06", "adapterSettings": {"temperature": 3}}
            refused = await server.wire.error_of("session.create", wrong)

    assert described[0]["key"] == "model"
    assert {"temperature", "reasoning.effort"} <= {setting["key"] for setting in described}
    assert len(described[0]["choices"]) == 8
    assert described[0]["choices"][0]["opts"] == {"can_reason": True}
    assert (bodies[0]["model"], bodies[0]["temperature"]) == ("gpt-4o-2024-08-06", 0)
    assert (bodies[1]["model"], "temperature" in bodies[1]) == ("o1-2024-12-17", False)
    assert bodies[0]["reasoning"] == {"effort": "high"}
    assert "setting 'temperature': Must be between 0 and 2" in refused["message"]


async def test_the_handlers_for_tools(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("The note.")
    arguments = json.dumps({"path": str(tmp_path / "note.txt")})
    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "view", "arguments": arguments}}
    async with ModelServer(stream({"tool_calls": [call]}), TWO_WORDS) as model:
        name = install(tmp_path, tools, model.url)
        async with running_server(tmp_path) as server:
            options = {"workingDirectory": str(tmp_path), "availableTools": ["view"]}
            answer = await answer_of_new_session(server, model=f"{name}/gpt-4-0125-preview", **options)

    assert answer == "Programming language"
    first, second = (request.json for request in model.requests)
    assert [tool["function"]["name"] for tool in first["tools"]] == ["view"]
    result = second["messages"][-1]
    assert (result["role"], result["tools"]["call_id"], result["opts"]) == ("tool", "call_1", {"visible": False})
    assert second["messages"][-2]["tools"]["calls"][0]["id"] == "call_1"


async def test_parse_inline_returns_what_is_to_be_inserted(tmp_path: Path) -> None:
    async with ModelServer(json_reply({"choices": [{"delta": {"content": "inserted"}}]})) as model:
        name = install(tmp_path, inline, model.url)
        async with running_server(tmp_path) as server:
            params = {"adapter": name, "model": "gpt-4-0125-preview", "prompt": "hi"}
            result = await server.wire.call("jumpseat.complete", params)

    assert result["text"] == "inserted"


def test_handlers_of_the_old_and_the_new_format_are_the_same() -> None:
    def names(handlers: Mapping[str, Any]) -> set[str]:
        raw = {"name": "x", "extends": "openai", "handlers": handlers}
        return set(read_declaration(raw, where="x").handlers)

    assert names(sample(formats, "OLD")) == names(sample(formats, "NEW"))
    more = {"build_tools", "build_reasoning", "build_body", "parse_tokens", "parse_meta"}
    assert names(sample(formats, "STRUCTURE")) == names(sample(formats, "NEW")) | more


@pytest.mark.parametrize("handlers", [sample(formats, "STRUCTURE"), sample(formats, "OLD"), sample(formats, "NEW")])
async def test_handlers_that_do_nothing_send_the_request(handlers: Mapping[str, Any]) -> None:
    async with ModelServer(TWO_WORDS) as model, HttpTransport() as transport:
        raw = {"name": "empty", "url": model.url, "body": {"sent": True}, "handlers": handlers}
        declaration = read_declaration(raw, where="empty")
        caller = DeclaredCaller(declaration, None, EnvResolver(os.environ), {}, Endpoint(""))
        with pytest.raises(AdapterError, match="parse_chat must return"):
            await said(HttpModel(caller, transport))

    assert [request.json for request in model.requests] == [{"sent": True}]
