"""Sessions with a declared adapter from the configuration, a file or a client, over the real wire."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.model_server import ModelServer, Reply, event_stream, json_reply
from tests.support.provided import answer_of_new_session, error_of_new_session, streamed_completion
from tests.support.server import JsonObject, RunningServer, Wire, running_server

pytestmark = pytest.mark.anyio

KEY: Final = "key-of-a-test-0123456789"


def write(folder: Path, name: str, text: str) -> None:
    adapters = folder / "home" / "adapters"
    adapters.mkdir(parents=True, exist_ok=True)
    (adapters / name).write_text(text)


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


async def test_an_adapter_in_the_configuration_is_called_as_declared(tmp_path: Path) -> None:
    async with (
        ModelServer(streamed_completion("Hello."), streamed_completion("Hello again.")) as model,
        running_server(tmp_path, config=config(model.url), env={"WORK_KEY": KEY}) as server,
    ):
        assert await answer_of_new_session(server) == "Hello."
        assert await answer_of_new_session(server, model="work/small") == "Hello again."

    first, second = model.requests
    assert first.path == "/special/chat/completions"
    assert (first.headers["x-team"], first.headers["authorization"]) == ("blue", f"Bearer {KEY}")
    assert (first.json["seed"], first.json["temperature"], first.json["model"]) == (7, 0.5, "large")
    assert second.json["model"] == "small"
    assert second.json["max_completion_tokens"] == 4000


async def test_the_models_of_a_declared_adapter_are_listed(tmp_path: Path) -> None:
    async with running_server(tmp_path, config=config("http://127.0.0.1:1")) as server:
        models = (await server.wire.call("models.list", {}))["models"]

    assert [model["id"] for model in models] == ["work/large", "work/small"]
    assert models[1]["capabilities"] == {
        "supports": {"vision": True, "reasoningEffort": False},
        "limits": {"max_context_window_tokens": 32000, "max_output_tokens": 4000},
    }


async def test_a_missing_key_ends_the_run_with_an_error_that_names_it(tmp_path: Path) -> None:
    async with running_server(tmp_path, config=config("http://127.0.0.1:1")) as server:
        text = await error_of_new_session(server)

    assert "${api_key} has no value: the environment variable" in text
    assert "WORK_KEY" in text


async def test_a_key_that_is_not_a_string_is_refused_by_name(tmp_path: Path) -> None:
    write(tmp_path, "late.py", 'ADAPTER = {"extends": "openai", "env": {"api_key": lambda adapter: True}}')
    text = '[adapters.early]\ntype = "openai"\nenv = {api_key = true}\n'
    async with running_server(tmp_path, config=text) as server:
        early = await error_of_new_session(server, model="early/m")
        late = await error_of_new_session(server, model="late/m")

    assert early.endswith("adapters.early: env.api_key: expected a string, got a boolean")
    assert late.endswith("adapter 'late': ${api_key} has no value: expected a string, got a boolean")


async def test_the_short_form_and_a_full_declaration_can_be_combined(tmp_path: Path) -> None:
    async with ModelServer(streamed_completion("Hello.")) as model:
        table = (
            f'[adapters.work]\ntype = "openai"\nbase_url = "{model.url}/v1"\napi_key_env = "lower_key"\n'
            'models = [{id = "m", wire_model = "wire-m"}]\nparameters = {seed = 7}\n'
        )
        async with running_server(tmp_path, config=table, env={"lower_key": f"{KEY}\n"}) as server:
            assert await answer_of_new_session(server, model="m") == "Hello."

    (request,) = model.requests
    assert (request.path, request.headers["authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
    assert (request.json["model"], request.json["seed"]) == ("wire-m", 7)


async def test_a_session_can_override_the_address_of_a_declared_adapter(tmp_path: Path) -> None:
    async with ModelServer(streamed_completion("one"), streamed_completion("two")) as model:
        text = config("http://127.0.0.1:1")
        async with running_server(tmp_path, config=text, env={"WORK_KEY": KEY}) as server:
            provider = {"type": "work", "baseUrl": f"{model.url}/v9/", "headers": {"X-Own": "yes"}}
            assert await answer_of_new_session(server, provider=provider) == "one"
            assert (
                await answer_of_new_session(server, provider={**provider, "apiKey": "sessions-key"}, model="small")
                == "two"
            )

    first, second = model.requests
    assert first.path == "/v9/chat/completions"
    assert (first.headers["x-team"], first.headers["x-own"]) == ("blue", "yes")
    # The declared key is only for the declared server.
    assert "authorization" not in first.headers
    assert (second.headers["authorization"], second.json["model"]) == ("Bearer sessions-key", "small")


async def test_secrets_are_only_sent_to_the_declared_server(tmp_path: Path) -> None:
    text = config("http://127.0.0.1:1").replace(
        'X-Team = "${team}"', 'X-Team = "${team}"\nX-Token = "${work_token}"\nX-Auth = "hidden"'
    )
    text = text.replace('team = "cmd:', 'work_token = "hidden"\nteam = "cmd:')
    async with (
        ModelServer(streamed_completion("one")) as model,
        running_server(tmp_path, config=text, env={"WORK_KEY": KEY}) as server,
    ):
        assert await answer_of_new_session(server, provider={"type": "work", "baseUrl": model.url}) == "one"

    headers = model.requests[0].headers
    assert (headers["x-team"], "x-token" in headers, "x-auth" in headers) == ("blue", False, False)


async def test_a_failing_schema_function_ends_the_run_with_an_error(tmp_path: Path) -> None:
    write(
        tmp_path,
        "mine.py",
        'ADAPTER = {"extends": "openai_compatible", "env": {"base_url": "http://127.0.0.1:1"},'
        ' "schema": {"heat": {"mapping": "parameters", "default": lambda adapter: 1 / 0}}}',
    )
    async with running_server(tmp_path) as server:
        assert (
            "schema.heat.default: its function failed (ZeroDivisionError at mine.py:1)"
            in await error_of_new_session(server, model="mine/m")
        )


async def test_an_extension_of_openai_at_another_address_does_not_inherit_the_key(tmp_path: Path) -> None:
    async with ModelServer(streamed_completion("Hello.")) as model:
        write(tmp_path, "near.toml", f'extends = "openai"\n[env]\nbase_url = "{model.url}/v1"\n')
        async with running_server(tmp_path, env={"OPENAI_API_KEY": KEY}) as server:
            assert await answer_of_new_session(server, model="near/m") == "Hello."

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
            assert await answer_of_new_session(server) == "Handled."
            models = (await server.wire.call("models.list", {}))["models"]

    sent = model.requests[0].json
    assert (sorted(sent), sent["team"]) == (["prompt", "team"], "blue")
    assert "\n\nhi\n\n" in sent["prompt"]
    assert [model["id"] for model in models] == ["mine/m", "mine/n"]


async def test_an_invalid_declaration_ends_its_run_and_hides_no_other(tmp_path: Path) -> None:
    write(tmp_path, "bad.toml", 'extends = "openai"\nheadres = 1\n')
    async with running_server(tmp_path, config=config("http://127.0.0.1:1")) as server:
        text = await error_of_new_session(server, model="bad/m")
        models = (await server.wire.call("models.list", {}))["models"]

    assert "bad.toml:2: headres: unknown, did you mean 'headers'?" in text
    assert [model["id"] for model in models] == ["work/large", "work/small"]


async def test_limits_and_proxy_apply_to_their_adapter_only(tmp_path: Path) -> None:
    async with ModelServer(streamed_completion("By proxy."), Reply(silent=True, ending="hang")) as proxy:
        far = f'type = "openai"\nbase_url = "http://far.invalid/v1"\nraw = ["--proxy", "{proxy.url}"]\n'
        text = (
            f"[retry]\nattempts = 1\n[adapters.patient]\n{far}"
            f"[adapters.hasty]\n{far}opts = {{timeouts = {{first_byte = 0.3}}}}\n"
        )
        async with running_server(tmp_path, config=text) as server:
            assert await answer_of_new_session(server, model="patient/m") == "By proxy."
            assert "within 0.3 s" in await error_of_new_session(server, model="hasty/m")

    assert proxy.requests[0].path == "http://far.invalid/v1/chat/completions"


# --- settings ----------------------------------------------------------------------------------------------------


async def sent_temperature(server: RunningServer, model: ModelServer, session: str, **send: Any) -> float:
    model.replies.append(streamed_completion("ok"))
    await server.wire.call("session.sendAndWait", {"sessionId": session, "prompt": "hi", **send})
    return model.requests[-1].json["temperature"]


async def test_settings_of_messages_and_sessions_reach_the_request_and_survive_a_resume(tmp_path: Path) -> None:
    async with ModelServer() as model:
        for round_trip in range(2):
            text = config(model.url)
            async with running_server(tmp_path, config=text, env={"WORK_KEY": KEY}) as server:
                wire = server.wire
                if round_trip:
                    await wire.call("session.resume", {"sessionId": "s"})
                    assert await sent_temperature(server, model, "s") == 0.25
                    continue
                await wire.call("session.create", {"sessionId": "s", "adapterSettings": {"temperature": 1}})
                assert await sent_temperature(server, model, "s") == 1
                assert await sent_temperature(server, model, "s", adapterSettings={"temperature": 1.5}) == 1.5
                assert await sent_temperature(server, model, "s") == 1
                update = {"sessionId": "s", "adapterSettings": {"temperature": 0.25}}
                await wire.call("session.options.update", update)
                assert await sent_temperature(server, model, "s") == 0.25


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"temprature": 1}, "unknown setting 'temprature', did you mean 'temperature'?"),
        ({"temperature": 3}, "setting 'temperature': expected at most 2"),
        ({"temperature": "hot"}, "setting 'temperature': expected a number, got a string"),
        ({"model": "small"}, "setting 'model' cannot be set"),
    ],
)
async def test_invalid_settings_are_refused_as_early_as_possible(
    tmp_path: Path, settings: JsonObject, expected: str
) -> None:
    async with running_server(tmp_path, config=config("http://127.0.0.1:1"), env={"WORK_KEY": KEY}) as server:
        error = await server.wire.error_of("session.create", {"model": "work/small", "adapterSettings": settings})
        provider = {"type": "work", "baseUrl": "http://127.0.0.1:1"}
        other = await server.wire.error_of("session.create", {"provider": provider, "adapterSettings": settings})
        unnamed = await server.wire.error_of("session.create", {"adapterSettings": settings})
        session = (await server.wire.call("session.create", {}))["sessionId"]
        prompt = {"sessionId": session, "prompt": "hi", "adapterSettings": settings}
        sent = await server.wire.error_of("session.send", prompt)
        history = (await server.wire.call("session.getMessages", {"sessionId": session}))["events"]

    for refusal in (error, other, unnamed, sent):
        assert expected in refusal["message"]
    assert not [event for event in history if event["type"] == "user.message"]


async def test_adapters_without_a_declaration_have_the_settings_of_their_wires(tmp_path: Path) -> None:
    async with ModelServer() as model:
        text = f'[adapters.bare]\ntype = "openai"\nbase_url = "{model.url}"\nmodels = ["m"]\n'
        provider = {"type": "openai", "baseUrl": model.url}
        async with running_server(tmp_path, config=text) as server:
            for number, options in enumerate(({"model": "bare/m"}, {"model": "m", "provider": provider})):
                session = f"s{number}"
                settings = {"temperature": 1, "max_tokens": 77, "reasoning_effort": "low"}
                options = {"sessionId": session, **options, "adapterSettings": settings}
                await server.wire.call("session.create", options)
                assert await sent_temperature(server, model, session) == 1
                assert model.requests[-1].json["max_tokens"] == 77
                assert model.requests[-1].json["reasoning_effort"] == "low"
                assert await sent_temperature(server, model, session, adapterSettings={"temperature": 0}) == 0


@pytest.mark.parametrize(
    ("provider", "settings", "expected"),
    [
        (
            {"type": "openai"},
            {"heat": 1},
            "unknown setting 'heat', expected one of frequency_penalty, logit_bias, ",
        ),
        ({"type": "openai"}, {"temperature": 3}, "setting 'temperature': expected at most 2"),
        ({"type": "openai"}, {"stop": []}, "setting 'stop': expected 1 to 4 strings"),
        ({"type": "openai", "wireApi": "responses"}, {"verbosity": "loud"}, "expected one of low, medium, high"),
        ({"type": "anthropic"}, {"temperature": 1.5}, "setting 'temperature': expected at most 1"),
        ({"type": "gemini"}, {"temperature": "hot"}, "setting 'temperature': expected a number, got a string"),
        ({"type": "ollama"}, {"num_ctx": 0}, "setting 'num_ctx': expected at least 1"),
    ],
)
async def test_invalid_settings_of_a_wire_are_refused_when_the_session_opens(
    tmp_path: Path, provider: JsonObject, settings: JsonObject, expected: str
) -> None:
    async with running_server(tmp_path) as server:
        options = {"model": "m", "provider": {**provider, "baseUrl": "http://127.0.0.1:1"}}
        error = await server.wire.error_of("session.create", {**options, "adapterSettings": settings})

    assert expected in error["message"]


async def by_request(wire: Wire, session: JsonObject, providers: list[JsonObject]) -> None:
    await wire.call("session.model.switchTo", {**session, "modelId": "plain/m"})


async def by_command(wire: Wire, session: JsonObject, providers: list[JsonObject]) -> None:
    await wire.call("session.commands.invoke", {**session, "name": "model", "input": "plain/m"})


async def by_resume(wire: Wire, session: JsonObject, providers: list[JsonObject]) -> None:
    await wire.call("session.destroy", session)
    await wire.call("session.resume", {**session, "model": "plain/m", "providers": providers})


@pytest.mark.parametrize("switch", [by_request, by_command, by_resume])
async def test_settings_unknown_to_the_next_model_are_removed_and_reported(
    tmp_path: Path, switch: Callable[[Wire, JsonObject, list[JsonObject]], Awaitable[None]]
) -> None:
    async with ModelServer(*[streamed_completion("Fine.")] * 3) as model, running_server(tmp_path) as server:
        wire, session = server.wire, {"sessionId": "s"}
        await wire.call(
            "jumpseat.adapters.register",
            {
                "declaration": {
                    "name": "warm",
                    "extends": "openai",
                    "env": {"base_url": model.url, "api_key": "none"},
                    "schema": {"warmth": {"mapping": "parameters"}},
                }
            },
        )
        providers = [{"name": "plain", "type": "openai", "baseUrl": model.url}]
        settings = {"warmth": "high", "temperature": 0.5}
        options = {"model": "warm/m", "providers": providers, "adapterSettings": settings}
        await wire.call("session.create", {**session, **options})
        await wire.call("session.sendAndWait", {**session, "prompt": "hi"})
        await switch(wire, session, providers)
        warning = (await wire.event("session.warning", session="s"))["data"]
        await wire.call("session.sendAndWait", {**session, "prompt": "hi"})
        await wire.call("session.destroy", session)
        await wire.call("session.resume", {**session, "providers": providers})
        await wire.call("session.sendAndWait", {**session, "prompt": "hi"})

    sent = [{key: request.json.get(key) for key in settings} for request in model.requests]
    assert sent == [settings, *[{"warmth": None, "temperature": 0.5}] * 2]
    assert (warning["warningType"], "dropped: warmth." in warning["message"]) == ("portability", True)


async def test_the_settings_of_a_built_in_adapter_are_described_for_a_form(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        adapter = (await server.wire.call("jumpseat.adapters.get", {"name": "anthropic"}))["adapter"]

    assert adapter["settings"][0] == {
        "key": "effort",
        "type": "enum",
        "description": "How hard the model thinks, if it can.",
        "choices": [
            {"id": effort, "name": effort, "meta": {}, "opts": {}}
            for effort in ("none", "minimal", "low", "medium", "high", "xhigh", "max")
        ],
        "optional": True,
        "enabled": True,
        "mapping": "request.reasoning_effort",
    }
    assert [setting["key"] for setting in adapter["settings"]] == [
        "effort",
        "max_tokens",
        "temperature",
        "top_p",
        "top_k",
        "stop_sequences",
        "service_tier",
        "metadata.user_id",
    ]


# --- our own methods ----------------------------------------------------------------------------------------------


async def test_adapters_are_listed_and_invalid_ones_with_the_reason(tmp_path: Path) -> None:
    write(tmp_path, "bad.toml", 'extends = "nothing"\n')
    async with running_server(tmp_path, config=config("http://127.0.0.1:1")) as server:
        adapters = (await server.wire.call("jumpseat.adapters.list", {}))["adapters"]

    by_name = {adapter["name"]: adapter for adapter in adapters}
    assert by_name["work"] == {"name": "work", "title": "Work", "origin": "configuration"}
    assert by_name["anthropic"] == {"name": "anthropic", "title": "anthropic", "origin": "built-in"}
    assert by_name["bad"]["origin"] == "home"
    assert by_name["bad"]["problem"].partition("bad.toml:1: ")[2].startswith("extends: unknown adapter 'nothing'")


async def test_an_adapter_is_described_for_a_form_without_its_secrets(tmp_path: Path) -> None:
    text = config("http://user:hidden@127.0.0.1:1") + (
        '\n[adapters.work.body]\nauth_token = "hidden"\ndeep = {api_key = "hidden", kept = 1}\n'
        '[adapters.work.schema."reasoning.effort"]\norder = 1\nmapping = "parameters"\ntype = "enum"\n'
        'choices = ["low", {id = "high", formatted_name = "High"}]\ndefault = "low"\n'
    )
    text = text.replace('team = "cmd:', 'plain = {value = "hidden", literal = true}\nteam = "cmd:')
    async with running_server(tmp_path, config=text, env={"WORK_KEY": "hidden"}) as server:
        result = await server.wire.call("jumpseat.adapters.get", {"name": "work"})
        unknown = await server.wire.error_of("jumpseat.adapters.get", {"name": "nothing"})

    adapter = result["adapter"]
    assert "hidden" not in json.dumps(adapter)
    assert unknown["message"].startswith("unknown adapter 'nothing', expected one of ")
    assert (adapter["title"], adapter["wireName"], adapter["origin"]) == ("Work", "openai", "configuration")
    assert (adapter["headers"], adapter["body"]) == (["X-Team"], {"deep": {"kept": 1}})
    assert adapter["url"] == "http://127.0.0.1:1/special/chat/completions"
    assert {variable["name"]: variable["source"] for variable in adapter["env"]} == {
        "api_key": "variable",
        "base_url": "literal",
        "plain": "literal",
        "team": "command",
    }
    settings = {setting["key"]: setting for setting in adapter["settings"]}
    assert [*settings][:3] == ["model", "reasoning.effort", "reasoning_effort"]
    effort, model, temperature = (settings[key] for key in ("reasoning.effort", "model", "temperature"))
    assert (effort["key"], effort["type"], effort["default"]) == ("reasoning.effort", "enum", "low")
    assert [(choice["id"], choice["name"]) for choice in effort["choices"]] == [("low", "low"), ("high", "High")]
    assert (model["key"], model["default"], [choice["id"] for choice in model["choices"]]) == (
        "model",
        "large",
        ["small", "large"],
    )
    assert (temperature["key"], temperature["default"], temperature["maximum"]) == ("temperature", 0.5, 2)


async def test_an_adapter_registered_by_a_client_answers_a_session(tmp_path: Path) -> None:
    async with ModelServer(
        streamed_completion("Registered."), streamed_completion("Again."), streamed_completion("As a provider.")
    ) as model:
        declaration = {
            "name": "theirs",
            "extends": "openai_compatible",
            "env": {"base_url": f"{model.url}/v1", "api_key": {"value": KEY, "literal": True}},
            "headers": {"Authorization": "Token ${api_key}"},
            "schema": {
                "model": {"default": "m", "choices": ["m"]},
                "top_k": {"type": "integer", "mapping": "parameters", "default": 4},
            },
        }
        async with running_server(tmp_path, config="[retry]\nattempts = 1\n") as server:
            call = server.wire.call
            result = await call("jumpseat.adapters.register", {"declaration": declaration})
            assert [setting["key"] for setting in result["adapter"]["settings"] if not setting["optional"]] == [
                "model",
                "top_k",
            ]
            assert KEY not in json.dumps(result)
            assert await answer_of_new_session(server, model="theirs/m") == "Registered."
            assert [model["id"] for model in (await call("models.list", {}))["models"]] == ["theirs/m"]

            await call("jumpseat.adapters.register", {"declaration": {**declaration, "parameters": {"seed": 1}}})
            assert await answer_of_new_session(server, model="theirs/m") == "Again."
            assert await answer_of_new_session(server, provider={"type": "theirs"}) == "As a provider."

    first, second, third = [request.json for request in model.requests]
    assert (first["model"], first["top_k"], "seed" in first) == ("m", 4, False)
    assert (second["seed"], third["model"]) == (1, "m")
    assert {request.headers["authorization"] for request in model.requests} == {f"Token {KEY}"}


@pytest.mark.parametrize(
    ("declaration", "expected"),
    [
        ({"extends": "openai"}, "the declaration needs a name"),
        ({"name": "openai", "extends": "openai"}, "adapter 'openai' already exists"),
        ({"name": "a/b", "extends": "openai"}, "invalid adapter name 'a/b'"),
        ({"name": "x", "extends": "nothing"}, "unknown adapter 'nothing'"),
        ({"name": "x", "url": "http://h"}, "adapter 'x' has no wire"),
        ({"name": "x", "extends": "openai", "raw": ["--upload-file", "y"]}, "'--upload-file' is not supported"),
        (
            {"name": "x", "extends": "openai", "opts": {"timeouts": {"idle": "long"}}},
            "expected a number of seconds",
        ),
    ],
)
async def test_an_invalid_declaration_is_refused_and_not_registered(
    tmp_path: Path, declaration: JsonObject, expected: str
) -> None:
    async with running_server(tmp_path) as server:
        error = await server.wire.error_of("jumpseat.adapters.register", {"declaration": declaration})
        names = [adapter["name"] for adapter in (await server.wire.call("jumpseat.adapters.list", {}))["adapters"]]

    assert expected in error["message"]
    assert "x" not in names


async def test_a_single_model_call_needs_no_session(tmp_path: Path) -> None:
    answer = {
        "model": "large-1",
        "choices": [{"message": {"role": "assistant", "content": "Short."}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3},
    }
    async with (
        ModelServer(*[json_reply(answer)] * 3) as model,
        running_server(tmp_path, config=config(model.url), env={"WORK_KEY": KEY}) as server,
    ):
        call = server.wire.call
        params = {"adapter": "work", "model": "small", "prompt": "hi", "settings": {"temperature": 1}}
        result = await call("jumpseat.complete", params)
        said_before = [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": "b"},
            {"role": "user", "content": "c"},
        ]
        await call("jumpseat.complete", {"messages": said_before})
        provider = {"type": "openai", "baseUrl": f"{model.url}/own", "apiKey": "k"}
        await call("jumpseat.complete", {"provider": provider, "model": "m", "prompt": "hi"})
        sessions = (await call("session.list", {}))["sessions"]

    first, second, third = model.requests
    assert (result["text"], result["model"], result["stopReason"]) == ("Short.", "large-1", "end_turn")
    assert (result["usage"]["inputTokens"], result["usage"]["outputTokens"]) == (7, 3)
    assert (first.json["model"], first.json["temperature"], first.json["stream"]) == ("small", 1, False)
    assert [(m["role"], m["content"]) for m in second.json["messages"]] == [
        (m["role"], m["content"]) for m in said_before
    ]
    assert (third.path, third.json["model"], sessions) == ("/own/chat/completions", "m", [])


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"adapter": "work"}, "expected either prompt or messages"),
        ({"prompt": "a", "messages": []}, "expected either prompt or messages"),
        (
            {"messages": [{"role": "assistant", "content": "a"}]},
            "expected the last message to have the role 'user'",
        ),
        ({"adapter": "work", "provider": {"type": "openai"}, "prompt": "a"}, "not both"),
        ({"adapter": "nothing", "prompt": "a"}, "unknown adapter 'nothing'"),
        ({"adapter": "work", "prompt": "a", "settings": {"heat": 1}}, "unknown setting 'heat'"),
        ({"adapter": "work", "prompt": "a"}, "cannot connect to http://127.0.0.1:1/special"),
    ],
)
async def test_a_failed_single_call_reports_the_reason(tmp_path: Path, params: JsonObject, expected: str) -> None:
    async with running_server(tmp_path, config=config("http://127.0.0.1:1"), env={"WORK_KEY": KEY}) as server:
        error = await server.wire.error_of("jumpseat.complete", params)

    assert expected in error["message"]


async def test_a_single_call_is_decoded_by_its_own_handler(tmp_path: Path) -> None:
    async with ModelServer(json_reply({"whole": "Inline."}), json_reply({"failed": "No."})) as model:
        write(
            tmp_path,
            "mine.py",
            f"""
import json

def inline_output(adapter, data, context=None):
    body = json.loads(data["body"])
    if "failed" in body:
        return {{"status": "error", "output": body["failed"]}}
    return {{"status": "success", "output": body["whole"]}}

ADAPTER = {{
    "extends": "openai_compatible",
    "env": {{"base_url": "{model.url}"}},
    "handlers": {{"inline_output": inline_output, "tokens": lambda adapter, data: {{"input": 5, "output": 2}}}},
}}
""",
        )
        async with running_server(tmp_path) as server:
            params = {"adapter": "mine", "model": "m", "prompt": "hi"}
            result = await server.wire.call("jumpseat.complete", params)
            error = await server.wire.error_of("jumpseat.complete", params)

    assert (result["text"], result["usage"]["inputTokens"]) == ("Inline.", 5)
    assert "No." in error["message"]


async def test_a_single_call_of_a_streaming_adapter_requests_a_whole_answer(tmp_path: Path) -> None:
    pieces = [f'data: {{"piece": "{word}"}}\n\n'.encode() for word in ("It ", "streams ", "all the same.")]
    async with ModelServer(json_reply({"whole": "Whole."}), event_stream(*pieces)) as model:
        write(
            tmp_path,
            "mine.py",
            f"""
import json

def setup(adapter):
    adapter.parameters["wants"] = "events" if adapter.opts["stream"] else "all"

def parse_chat(adapter, data, tools):
    return {{"status": "success", "output": {{"content": json.loads(data.partition(": ")[2])["piece"]}}}}

def parse_inline(adapter, data, context):
    return {{"status": "success", "output": json.loads(data["body"])["whole"]}}

ADAPTER = {{
    "url": "{model.url}",
    "opts": {{"stream": True}},
    "parameters": {{"stream": True}},
    "handlers": {{
        "lifecycle": {{"setup": setup}},
        "request": {{"build_messages": lambda adapter, messages: {{"question": messages[-1]["content"]}}}},
        "response": {{"parse_chat": parse_chat, "parse_inline": parse_inline}},
    }},
}}
""",
        )
        async with running_server(tmp_path) as server:
            params = {"adapter": "mine", "model": "m", "prompt": "hi"}
            whole = await server.wire.call("jumpseat.complete", params)
            streamed = await server.wire.call("jumpseat.complete", params)

    assert model.requests[0].json == {"wants": "all", "stream": False, "question": "hi"}
    assert whole["text"] == "Whole."
    assert streamed["text"] == "It streams all the same."


async def test_the_endpoint_of_a_declared_adapter_is_returned_if_the_operator_allows_it(tmp_path: Path) -> None:
    env = {"WORK_KEY": KEY, "COPILOT_ALLOW_GET_PROVIDER_ENDPOINT": "true"}
    async with running_server(tmp_path, config=config("http://127.0.0.1:1"), env=env) as server:
        session = (await server.wire.call("session.create", {"model": "work/large"}))["sessionId"]
        endpoint = await server.wire.call("session.provider.getEndpoint", {"sessionId": session})

    assert (endpoint["type"], endpoint["wireApi"], endpoint["apiKey"]) == ("openai", "completions", KEY)
    assert (endpoint["baseUrl"], endpoint["headers"]) == ("http://127.0.0.1:1/special", {"X-Team": "blue"})


async def test_an_empty_variable_counts_as_set_in_a_declaration(tmp_path: Path) -> None:
    async with ModelServer(streamed_completion("hello")) as provider:
        lines = 'extends = "openai_compatible"\nparameters = {user = "u-${team}"}\nschema.model.default = "m"\n'
        write(tmp_path, "work.toml", f'{lines}env = {{base_url = "{provider.url}", team = "WORK_TEAM"}}\n')
        async with running_server(tmp_path, env={"WORK_TEAM": ""}) as server:
            assert await answer_of_new_session(server, model="work/m") == "hello"

    assert provider.requests[0].json["user"] == "u-"
