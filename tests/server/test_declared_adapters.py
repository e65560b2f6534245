"""Sessions whose model is behind a declared adapter: in the configuration, a file, or given by a client."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.model_server import ModelServer, Reply, event_stream, json_reply
from tests.support.server import JsonObject, RunningServer, running_server

pytestmark = pytest.mark.anyio

KEY: Final = "key-of-a-test-0123456789"


def said(text: str) -> Reply:
    """An answer of chat completions."""
    chunk = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]}
    return event_stream(f"data: {json.dumps(chunk)}\n\n".encode(), b"data: [DONE]\n\n")


def write(folder: Path, name: str, text: str) -> None:
    adapters = folder / "home" / "adapters"
    adapters.mkdir(parents=True, exist_ok=True)
    (adapters / name).write_text(text)


async def ask(server: RunningServer, **options: Any) -> str:
    """What a new session answers to a prompt."""
    wire = server.wire
    session = (await wire.call("session.create", {"streaming": True, **options}))["sessionId"]
    answer = await wire.call("session.sendAndWait", {"sessionId": session, "prompt": "hi"})
    return answer["response"]["data"]["content"]


async def failure(server: RunningServer, prompt: JsonObject | None = None, **options: Any) -> str:
    """The error in which a prompt of a new session ends."""
    wire = server.wire
    session = (await wire.call("session.create", {"streaming": True, **options}))["sessionId"]
    await wire.call("session.send", {"sessionId": session, "prompt": "hi", **(prompt or {})})
    event = await wire.event("session.error", session=session)
    return event["data"]["message"]


def config(url: str) -> str:
    return f"""
[retry]
attempts = 1

[adapters.work]
extends = "openai"
formatted_name = "Work"
url = "{url}/special/chat/completions"

[adapters.work.env]
api_key = "WORK_KEY"
team = "cmd:printf blue"

[adapters.work.headers]
X-Team = "${{team}}"

[adapters.work.parameters]
seed = 7

[adapters.work.schema.model]
default = "large"
choices = [
  {{id = "small", meta = {{context_window = 32000, max_tokens = 4000}}, opts = {{has_vision = true}}}},
  "large",
]

[adapters.work.schema.temperature]
mapping = "parameters"
type = "number"
default = 0.5
maximum = 2
"""


async def test_a_declaration_in_the_configuration_is_called_as_it_says(tmp_path: Path) -> None:
    async with (
        ModelServer(said("Hello."), said("Hello again.")) as model,
        running_server(tmp_path, config=config(model.url), env={"WORK_KEY": KEY}) as server,
    ):
        assert await ask(server) == "Hello."
        assert await ask(server, model="work/small") == "Hello again."

    first, second = model.requests
    assert first.path == "/special/chat/completions"
    assert (first.headers["x-team"], first.headers["authorization"]) == ("blue", f"Bearer {KEY}")
    assert (first.json["seed"], first.json["temperature"], first.json["model"]) == (7, 0.5, "large")
    assert second.json["model"] == "small"
    assert second.json["max_completion_tokens"] == 4000


async def test_its_models_are_in_the_list(tmp_path: Path) -> None:
    async with running_server(tmp_path, config=config("http://127.0.0.1:1")) as server:
        models = (await server.wire.call("models.list", {}))["models"]

    assert [one["id"] for one in models] == ["work/large", "work/small"]
    assert models[1]["capabilities"] == {
        "supports": {"vision": True, "reasoningEffort": False},
        "limits": {"max_context_window_tokens": 32000, "max_output_tokens": 4000},
    }


async def test_a_key_that_is_nowhere_ends_the_run_with_its_name(tmp_path: Path) -> None:
    async with running_server(tmp_path, config=config("http://127.0.0.1:1")) as server:
        text = await failure(server)

    assert "${api_key} has no value: the environment variable" in text
    assert "WORK_KEY" in text


async def test_short_keys_and_those_of_a_declaration_go_together(tmp_path: Path) -> None:
    async with ModelServer(said("Hello.")) as model:
        table = (
            f'[adapters.work]\ntype = "openai"\nbase_url = "{model.url}/v1"\napi_key_env = "lower_key"\n'
            'models = [{id = "m", wire_model = "wire-m"}]\nparameters = {seed = 7}\n'
        )
        async with running_server(tmp_path, config=table, env={"lower_key": f"{KEY}\n"}) as server:
            assert await ask(server, model="m") == "Hello."

    (request,) = model.requests
    assert (request.path, request.headers["authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
    assert (request.json["model"], request.json["seed"]) == ("wire-m", 7)


async def test_a_session_may_say_another_address_for_a_declared_adapter(tmp_path: Path) -> None:
    async with ModelServer(said("one"), said("two")) as model:
        text = config("http://127.0.0.1:1")
        async with running_server(tmp_path, config=text, env={"WORK_KEY": KEY}) as server:
            provider = {"type": "work", "baseUrl": f"{model.url}/v9/", "headers": {"X-Own": "yes"}}
            assert await ask(server, provider=provider) == "one"
            assert await ask(server, provider={**provider, "apiKey": "sessions-key"}, model="small") == "two"

    first, second = model.requests
    assert first.path == "/v9/chat/completions"
    assert (first.headers["x-team"], first.headers["x-own"]) == ("blue", "yes")
    # The declared key is for the declared server.
    assert "authorization" not in first.headers
    assert (second.headers["authorization"], second.json["model"]) == ("Bearer sessions-key", "small")


async def test_who_extends_openai_at_another_address_does_not_get_its_key_along(tmp_path: Path) -> None:
    async with ModelServer(said("Hello.")) as model:
        write(tmp_path, "near.toml", f'extends = "openai"\n[env]\nbase_url = "{model.url}/v1"\n')
        async with running_server(tmp_path, env={"OPENAI_API_KEY": KEY}) as server:
            assert await ask(server, model="near/m") == "Hello."

    assert "authorization" not in model.requests[0].headers


async def test_an_adapter_of_python_handlers_answers_a_session(tmp_path: Path) -> None:
    async with ModelServer(json_reply({"reply": "Handled."})) as model:
        write(
            tmp_path,
            "mine.py",
            f"""
import json

def build_messages(adapter, messages):
    return {{"prompt": messages[-1]["content"], "team": adapter.env_replaced["team"]}}

def parse_chat(adapter, data, tools):
    if isinstance(data, dict):
        reply = json.loads(data["body"])["reply"]
        return {{"status": "success", "output": {{"role": "assistant", "content": reply}}}}

ADAPTER = {{
    "url": "{model.url}/answer",
    "env": {{"team": lambda adapter: "blue"}},
    "schema": {{"model": {{"default": "m", "choices": lambda adapter: ["m", "n"]}}}},
    "handlers": {{"request": {{"build_messages": build_messages}}, "response": {{"parse_chat": parse_chat}}}},
}}
""",
        )
        async with running_server(tmp_path) as server:
            assert await ask(server) == "Handled."
            models = (await server.wire.call("models.list", {}))["models"]

    sent = model.requests[0].json
    assert (sorted(sent), sent["team"]) == (["prompt", "team"], "blue")
    assert "\n\nhi\n\n" in sent["prompt"]
    assert [one["id"] for one in models] == ["mine/m", "mine/n"]


async def test_a_declaration_that_is_wrong_ends_the_run_and_hides_no_other(tmp_path: Path) -> None:
    write(tmp_path, "bad.toml", 'extends = "openai"\nheadres = 1\n')
    async with running_server(tmp_path, config=config("http://127.0.0.1:1")) as server:
        text = await failure(server, model="bad/m")
        models = (await server.wire.call("models.list", {}))["models"]

    assert "bad.toml: headres: Extra inputs are not permitted" in text
    assert [one["id"] for one in models] == ["work/large", "work/small"]


async def test_limits_and_proxy_of_an_adapter_are_its_own(tmp_path: Path) -> None:
    async with ModelServer(said("By proxy."), Reply(silent=True, ending="hang")) as proxy:
        text = (
            "[retry]\nattempts = 1\n"
            '[adapters.far]\ntype = "openai"\nbase_url = "http://far.invalid/v1"\n'
            f'raw = ["--proxy", "{proxy.url}"]\nopts = {{timeouts = {{first_byte = 0.3}}}}\n'
        )
        async with running_server(tmp_path, config=text) as server:
            assert await ask(server, model="far/m") == "By proxy."
            assert "sent no answer within 0.3 s" in await failure(server, model="far/m")

    assert proxy.requests[0].path == "http://far.invalid/v1/chat/completions"
