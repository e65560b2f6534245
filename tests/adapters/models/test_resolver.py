"""Resolution of a session's model, and the errors if that is impossible."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import pytest

from jumpseat.adapters.adapter import ClientToken
from jumpseat.adapters.models.copilot_login import TokenLogin
from jumpseat.adapters.models.resolver import Models
from jumpseat.adapters.transport.http import HttpModel
from jumpseat.agent.blocks import TextBlock, UserMessage
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.model import Completed, ModelInfo, ModelRequest
from jumpseat.agent.settings import Login, SessionSettings
from jumpseat.config import Config
from jumpseat.errors import ConfigError, InvalidRequestError, JumpseatError, ProviderAuthError
from jumpseat.options import Options
from jumpseat_protocol.server import AuthStatusResult
from jumpseat_protocol.sessions import (
    ModelCapabilities,
    NamedProviderConfig,
    ProviderConfig,
    ProviderModelConfig,
)
from jumpseat_protocol.version import __version__
from tests.support.cases import all_cases
from tests.support.limits import WAIT_S
from tests.support.model_server import ModelServer, Reply, SeenRequest, json_reply

pytestmark = pytest.mark.anyio

Make: TypeAlias = Callable[..., Models]

SECRET = "sk-very-secret"
TOKEN = "gho-like-token-1"
SCRIPT = {"turns": [{"text": "from the script"}]}
ANSWER = json_reply({"choices": [{"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}]})
COPILOT_MODELS = json_reply(
    {
        "data": [
            {"id": "off", "policy": {"state": "disabled"}},
            {"id": "first", "name": "First", "capabilities": {"limits": {"max_prompt_tokens": 9}}},
            {"id": "second"},
        ]
    }
)
FIRST = ModelInfo("first", "First", max_prompt_tokens=9)


@pytest.fixture
async def server() -> AsyncGenerator[ModelServer, None]:
    async with ModelServer(lists=True) as server:
        yield server


@pytest.fixture
async def build(server: ModelServer) -> AsyncGenerator[Make, None]:
    """Return a function that makes a resolver; ``server`` stands for the APIs of GitHub and Copilot."""
    opened: list[Models] = []
    apis = {"COPILOT_DEBUG_GITHUB_API_URL": f"{server.url}/github", "COPILOT_API_URL": f"{server.url}/copilot"}

    def make(
        *,
        environ: Mapping[str, str] | None = None,
        auth_token: str | None = None,
        **config: Any,
    ) -> Models:
        options = Options(environ={**apis, **(environ or {})}, auth_token=auth_token)
        opened.append(Models(Config.model_validate(config), options))
        return opened[-1]

    yield make
    for models in opened:
        await models.connections.close()


def settings_for(model: str | None = None, login: Login | None = None, **options: Any) -> SessionSettings:
    settings = SessionSettings.of(Path("/project"), model=model, **options)
    settings.login = login
    return settings


def provider(**fields: Any) -> ProviderConfig:
    return ProviderConfig.model_validate(fields)


async def resolve(models: Models, model: str | None = None, **fields: Any) -> ResolvedModel:
    with anyio.fail_after(WAIT_S):
        return await models.resolve(settings_for(model, **fields))


async def call(server: ModelServer, models: Models, model: str | None = None, **fields: Any) -> SeenRequest:
    """Return the request that a session with these settings sends."""
    resolved = await resolve(models, model, **fields)
    server.replies.append(ANSWER)
    request = ModelRequest(resolved.wire_name, "", [UserMessage([TextBlock("p")])], stream=False)
    with anyio.fail_after(WAIT_S):
        async with resolved.model.stream(request) as stream:
            assert [type(event) for event in [event async for event in stream]] == [Completed]
    return server.requests[-1]


def address_of(resolved: ResolvedModel) -> tuple[str, str | None]:
    """Return the base URL and the key with which a model is called."""
    assert isinstance(resolved.model, HttpModel)
    endpoint = resolved.model.caller.endpoint
    return endpoint.base_url, endpoint.api_key


def two_adapters(server: ModelServer) -> dict[str, Any]:
    """Return a configuration with two adapters and an alias."""
    return {
        "adapters": {
            "work": {
                "type": "openai",
                "base_url": f"{server.url}/work",
                "models": ["gpt", {"id": "mini", "name": "M"}],
            },
            "home": {"type": "openai", "base_url": f"{server.url}/home/", "models": ["gpt", "llama"]},
        },
        "models": {"fast": {"adapter": "home", "model": "tiny"}},
    }


# --- selection ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "path", "wire_name", "model_id"),
    [
        (None, "/work/chat/completions", "gpt", "work/gpt"),
        ("fast", "/home/chat/completions", "tiny", "home/tiny"),
        ("home/gpt", "/home/chat/completions", "gpt", "home/gpt"),
        ("work/of-tomorrow", "/work/chat/completions", "of-tomorrow", "work/of-tomorrow"),
        ("gpt", "/work/chat/completions", "gpt", "work/gpt"),
        ("llama", "/home/chat/completions", "llama", "home/llama"),
    ],
)
async def test_a_name_resolves_to_its_adapter(
    build: Make, server: ModelServer, name: str | None, path: str, wire_name: str, model_id: str
) -> None:
    models = build(auth_token=TOKEN, **two_adapters(server))
    request = await call(server, models, name)
    resolved = await resolve(models, name)

    assert (request.path, request.json["model"]) == (path, wire_name)
    assert (resolved.wire_name, resolved.info.id, resolved.byok) == (wire_name, model_id, True)
    assert (resolved.model.adapter_name, len(server.requests)) == ("openai", 1)


async def test_the_sessions_own_provider_wins_over_everything(build: Make, server: ModelServer) -> None:
    models = build(auth_token=TOKEN, **two_adapters(server))
    request = await call(server, models, "fast", provider=provider(baseUrl=f"{server.url}/mine/", apiKey=SECRET))

    assert (request.path, request.json["model"]) == ("/mine/chat/completions", "fast")
    assert request.headers["authorization"] == f"Bearer {SECRET}"


async def test_an_alias_wins_over_a_declared_model_of_its_name(build: Make, server: ModelServer) -> None:
    config = two_adapters(server) | {"models": {"gpt": {"adapter": "home", "model": "llama"}}}

    assert (await call(server, build(**config), "gpt")).path == "/home/chat/completions"


async def test_the_configured_default_is_used_if_the_session_names_no_model(
    build: Make, server: ModelServer
) -> None:
    models = build(auth_token=TOKEN, default_model="fast", **two_adapters(server))

    assert (await resolve(models)).info.id == "home/tiny"
    assert await models.default_name(settings_for()) == "home/tiny"


async def test_an_undeclared_name_resolves_to_copilot_if_there_is_a_token(build: Make, server: ModelServer) -> None:
    server.replies.append(COPILOT_MODELS)
    models = build(auth_token=TOKEN, **two_adapters(server))
    sent = await call(server, models, "of-tomorrow", client_name="editor")

    assert [request.path for request in server.requests] == ["/copilot/models", "/copilot/chat/completions"]
    assert (sent.json["model"], sent.headers["authorization"]) == ("of-tomorrow", f"Bearer {TOKEN}")
    assert sent.headers["user-agent"] == f"jumpseat/{__version__} editor (Copilot API)"


async def test_with_only_a_token_the_first_usable_model_of_copilot_is_the_default(
    build: Make,
    server: ModelServer,
) -> None:
    server.replies.append(COPILOT_MODELS)
    models = build(auth_token=TOKEN)
    resolved = await resolve(models)

    assert (resolved.wire_name, resolved.info, resolved.byok) == ("first", FIRST, False)
    assert await models.default_name(settings_for()) == "first"
    assert (await resolve(models, "off")).wire_name == "off"
    assert len(server.requests) == 1


async def test_copilot_without_a_usable_model_is_an_error(build: Make, server: ModelServer) -> None:
    server.replies.append(json_reply({"data": [{"id": "off", "policy": {"state": "disabled"}}]}))

    with pytest.raises(ConfigError, match="the Copilot API lists no usable model"):
        await resolve(build(auth_token=TOKEN))


async def test_the_token_of_a_session_wins_over_that_of_the_process(build: Make, server: ModelServer) -> None:
    server.replies += [COPILOT_MODELS, COPILOT_MODELS]
    models = build(auth_token=TOKEN)
    await resolve(models)
    sent = await call(server, models, login=TokenLogin("gho-of-the-session"))

    assert [request.path for request in server.requests] == ["/copilot/models"] * 2 + ["/copilot/chat/completions"]
    assert sent.headers["authorization"] == "Bearer gho-of-the-session"


@pytest.mark.parametrize("name", ["of-tomorrow", "vendor/of-tomorrow"])
async def test_a_single_adapter_gets_every_name(build: Make, server: ModelServer, name: str) -> None:
    models = build(adapters={"work": {"type": "openai", "base_url": server.url}})

    assert (await call(server, models, name)).json["model"] == name


async def test_with_several_adapters_an_unknown_name_is_refused_with_their_names(
    build: Make, server: ModelServer
) -> None:
    with pytest.raises(ConfigError) as caught:
        await resolve(build(**two_adapters(server)), "of-tomorrow")

    assert str(caught.value) == ("unknown model 'of-tomorrow': name it as 'adapter/model', adapters: work, home")


async def test_a_local_server_needs_no_configuration_but_a_model(build: Make) -> None:
    with all_cases() as case:
        for name, variable, address in (
            ("ollama", "OLLAMA_MODEL", "http://localhost:11434"),
            ("lmstudio", "LMSTUDIO_MODEL", "http://localhost:1234/v1"),
            ("llamacpp", "LLAMACPP_MODEL", "http://localhost:8080/v1"),
            ("vllm", "VLLM_MODEL", "http://localhost:8000/v1"),
        ):
            with case(name):
                for found in (
                    await resolve(build(), f"{name}/qwen3"),
                    await resolve(build(environ={variable: "qwen3"})),
                ):
                    assert (found.info.id, *address_of(found)) == (f"{name}/qwen3", address, None)


@pytest.mark.parametrize("name", [None, "gpt"])
async def test_without_any_configuration_the_error_names_the_ways_to_configure(
    build: Make, name: str | None
) -> None:
    expected = (
        "no model is configured: run 'jumpseat setup', set a key such as OPENAI_API_KEY or ANTHROPIC_API_KEY,"
        " or give the session a provider"
    )
    with pytest.raises(ConfigError) as resolving:
        await resolve(build(), name)
    with pytest.raises(ConfigError) as listing:
        await build().catalogue.list()

    assert str(listing.value) == expected
    assert str(resolving.value) == (f"unknown model {name!r}: {expected}" if name else expected)
    assert await build().default_name(settings_for(name)) is None


# --- keys and tokens ----------------------------------------------------------------------------------------------


async def test_keys_of_the_environment_configure_their_adapters(build: Make, server: ModelServer) -> None:
    environ = {
        "OPENAI_API_KEY": SECRET,
        "OPENAI_BASE_URL": f"{server.url}/v1/",
        "OPENAI_MODEL": "gpt",
        "ANTHROPIC_API_KEY": "x",
    }
    models = build(environ=environ)
    request = await call(server, models)

    assert (request.path, request.json["model"]) == ("/v1/chat/completions", "gpt")
    assert request.headers["authorization"] == f"Bearer {SECRET}"
    assert (await resolve(models, "anthropic/claude")).model.adapter_name == "anthropic"


async def test_a_base_url_alone_is_an_adapter_without_a_key(build: Make, server: ModelServer) -> None:
    models = build(environ={"OPENAI_BASE_URL": server.url})

    assert "authorization" not in (await call(server, models, "llama")).headers


BESIDE = {"DEEPSEEK_API_KEY": SECRET, "OPENROUTER_API_KEY": SECRET, "HF_TOKEN": SECRET, "OLLAMA_HOST": "gpu"}
"""Variables that are often set for other programs."""


@pytest.mark.parametrize(
    "environ",
    [{"OPENAI_API_KEY": "o", "OPENAI_MODEL": "gpt"}, {"OPENAI_BASE_URL": "http://gateway", "OPENAI_MODEL": "gpt"}],
)
@pytest.mark.parametrize("name", [None, "gpt", "of-tomorrow"])
async def test_keys_of_other_providers_do_not_change_the_resolution_of_a_name(
    build: Make, environ: dict[str, str], name: str | None
) -> None:
    alone = await resolve(build(environ=environ), name)
    beside = await resolve(build(environ={**environ, **BESIDE, "DEEPSEEK_MODEL": "gpt"}), name)

    assert (beside.info, beside.model.adapter_name, beside.wire_name) == (
        alone.info,
        alone.model.adapter_name,
        alone.wire_name,
    )


async def test_keys_of_other_providers_do_not_change_the_default_of_an_account_or_of_a_registry(
    build: Make, server: ModelServer
) -> None:
    server.replies.append(COPILOT_MODELS)
    environ = {**BESIDE, "DEEPSEEK_MODEL": "deepseek-v4-flash"}
    registry: dict[str, Any] = {
        "providers": [NamedProviderConfig(name="mine", base_url=server.url)],
        "models": [ProviderModelConfig(id="own", provider="mine")],
    }

    assert (await resolve(build(environ=environ, auth_token=TOKEN))).info == FIRST
    assert await build(environ=environ).default_name(settings_for(**registry)) == "mine/own"


@pytest.mark.parametrize("token", [None, TOKEN])
@pytest.mark.parametrize("more", [{}, {"OPENAI_API_KEY": "o"}, {"OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": "a"}])
async def test_a_provider_whose_key_is_in_the_environment_can_be_named(
    build: Make, server: ModelServer, token: str | None, more: dict[str, str]
) -> None:
    environ = {**more, "DEEPSEEK_API_KEY": SECRET, "DEEPSEEK_BASE_URL": server.url}
    request = await call(server, build(environ=environ, auth_token=token), "deepseek/deepseek-v4-pro")

    assert (request.path, request.json["model"]) == ("/chat/completions", "deepseek-v4-pro")
    assert request.headers["authorization"] == f"Bearer {SECRET}"


async def test_a_gateway_keeps_the_names_that_begin_like_another_provider(build: Make, server: ModelServer) -> None:
    environ = {"OPENAI_BASE_URL": server.url, "DEEPSEEK_API_KEY": SECRET}
    request = await call(server, build(environ=environ), "deepseek/deepseek-v4-pro")

    assert request.json["model"] == "deepseek/deepseek-v4-pro"
    assert "authorization" not in request.headers


async def test_without_any_configuration_the_key_of_another_provider_is_used(
    build: Make, server: ModelServer
) -> None:
    environ = {"MISTRAL_API_KEY": SECRET, "MISTRAL_BASE_URL": server.url}
    several = {**environ, "XAI_API_KEY": "x", "MISTRAL_MODEL": "mistral-small-latest"}

    assert (await call(server, build(environ=environ), "any")).json["model"] == "any"
    assert await build(environ=several).default_name(settings_for()) == "mistral/mistral-small-latest"
    assert [model.id for model in await build(environ=several).catalogue.list()] == ["mistral/mistral-small-latest"]
    assert (await build(environ=several).auth_status()).status_message == "Configured providers: mistral, xai"
    with pytest.raises(ConfigError, match=r"^unknown model 'any': .* adapters: mistral, xai$"):
        await resolve(build(environ=several), "any")


async def test_models_of_other_providers_are_listed_after_those_of_copilot(
    build: Make, server: ModelServer
) -> None:
    server.replies.append(COPILOT_MODELS)
    environ = {"DEEPSEEK_API_KEY": SECRET, "DEEPSEEK_MODEL": "d"}
    models = await build(environ=environ, auth_token=TOKEN).catalogue.list()

    assert [model.id for model in models] == ["off", "first", "second", "deepseek/d"]


async def test_an_ollama_server_needs_only_its_host(build: Make) -> None:
    resolved = await resolve(build(environ={"OLLAMA_HOST": "0.0.0.0:8080"}), "llama3.2")
    assert (resolved.model.adapter_name, resolved.wire_name) == ("ollama", "llama3.2")


async def test_an_alias_can_refer_to_a_provider_of_the_environment(build: Make, server: ModelServer) -> None:
    alias = {"fast": {"adapter": "xai", "model": "grok-4.3"}}
    environ = {"XAI_API_KEY": SECRET, "XAI_BASE_URL": server.url}

    assert (await call(server, build(environ=environ, models=alias), "fast")).json["model"] == "grok-4.3"
    with pytest.raises(ConfigError, match="model 'fast' needs the adapter 'xai': set XAI_API_KEY"):
        await resolve(build(models=alias), "fast")


async def test_the_endpoint_of_a_wire_unknown_to_clients_is_not_returned(build: Make) -> None:
    models = build(environ={"COPILOT_ALLOW_GET_PROVIDER_ENDPOINT": "true"})
    own = {"baseUrl": "http://h", "apiKey": "k", "modelId": "m"}
    known = await models.endpoint(settings_for(provider=provider(type="kimi", **own)))

    assert (known.type, known.wire_api, known.base_url) == ("openai", "completions", "http://h")
    with pytest.raises(InvalidRequestError, match="called through 'ollama'"):
        await models.endpoint(settings_for(provider=provider(type="ollama", **own)))


async def test_the_configuration_of_an_adapter_wins_over_the_environment(build: Make, server: ModelServer) -> None:
    environ = {"OPENAI_API_KEY": SECRET, "OPENAI_BASE_URL": "http://127.0.0.1:9", "MINE": "my-key"}
    mine = {"base_url": server.url, "api_key_env": "MINE", "headers": {"X-Team": "blue"}}
    request = await call(server, build(environ=environ, adapters={"openai": mine}), "gpt")

    assert (request.headers["authorization"], request.headers["x-team"]) == ("Bearer my-key", "blue")


async def test_a_well_known_key_is_not_sent_to_another_server(build: Make, server: ModelServer) -> None:
    models = build(environ={"OPENAI_API_KEY": SECRET}, adapters={"openai": {"base_url": server.url}})

    assert "authorization" not in (await call(server, models, "gpt")).headers


async def test_a_missing_key_is_named_by_its_variable(build: Make, server: ModelServer) -> None:
    models = build(adapters={"work": {"type": "openai", "base_url": server.url, "api_key_env": "WORK_KEY"}})

    with pytest.raises(ConfigError) as caught:
        await resolve(models, "gpt")
    assert str(caught.value) == "adapter 'work': api_key_env: the environment variable 'WORK_KEY' is not set"


@pytest.mark.parametrize(
    ("environ", "token"),
    [
        ({"COPILOT_GITHUB_TOKEN": "2", "GH_TOKEN": "3", "GITHUB_TOKEN": "4"}, "2"),
        ({"GH_TOKEN": "3", "GITHUB_TOKEN": "4"}, "3"),
        ({"GITHUB_TOKEN": "4"}, "4"),
        ({}, None),
    ],
)
async def test_tokens_of_the_environment_are_looked_up_in_order(
    build: Make, server: ModelServer, environ: dict[str, str], token: str | None
) -> None:
    server.replies.append(json_reply({"login": "me"}))
    status = await build(environ=environ).auth_status()

    tokens = [request.headers["authorization"] for request in server.requests]
    assert tokens == ([] if token is None else [f"Bearer {token}"])
    assert (status.is_authenticated, status.auth_type) == ((False, None) if token is None else (True, "env"))


async def test_a_token_of_the_api_wins_over_github_tokens_and_is_sent_only_to_the_api(
    build: Make, server: ModelServer
) -> None:
    server.replies.append(COPILOT_MODELS)
    models = build(environ={"GITHUB_COPILOT_API_TOKEN": "of-the-api", "COPILOT_GITHUB_TOKEN": TOKEN})
    status = await models.auth_status()
    await models.catalogue.list()

    assert (status.is_authenticated, status.auth_type) == (True, "copilot-api-token")
    assert [(request.path, request.headers["authorization"]) for request in server.requests] == [
        ("/copilot/models", "Bearer of-the-api")
    ]


async def test_a_token_of_the_api_requires_its_address(build: Make, server: ModelServer) -> None:
    models = build(environ={"GITHUB_COPILOT_API_TOKEN": "of-the-api", "COPILOT_API_URL": ""})

    assert await models.auth_status() == AuthStatusResult(
        is_authenticated=False, status_message="Not authenticated"
    )
    assert server.requests == []


async def test_the_token_of_the_host_wins_over_those_of_the_environment(build: Make, server: ModelServer) -> None:
    server.replies.append(json_reply({"login": "me"}))
    models = build(environ={"GH_TOKEN": "other"}, auth_token=TOKEN)

    assert await models.auth_status() == AuthStatusResult(
        is_authenticated=True,
        auth_type="token",
        host="https://github.com",
        login="me",
        status_message="Logged in as me",
    )
    assert server.requests[0].headers["authorization"] == f"Bearer {TOKEN}"


async def test_the_login_status_without_a_token_names_the_configuration(build: Make, server: ModelServer) -> None:
    assert await build().auth_status() == AuthStatusResult(
        is_authenticated=False, status_message="Not authenticated"
    )
    assert await build(**two_adapters(server)).auth_status() == AuthStatusResult(
        is_authenticated=True, auth_type="api-key", status_message="Configured providers: work, home"
    )


async def test_a_refused_token_is_not_a_login(build: Make, server: ModelServer) -> None:
    server.replies += [json_reply({"message": f"Bad credentials {TOKEN}"}, status=401)] * 2
    models = build(auth_token=TOKEN)

    assert await models.auth_status() == AuthStatusResult(
        is_authenticated=False,
        status_message="Not authenticated: HTTP 401 Unauthorized: Bad credentials [redacted]",
    )
    with pytest.raises(ProviderAuthError, match="401 Unauthorized"):
        await models.copilot.authenticate(settings_for(login=TokenLogin(TOKEN)))


async def test_a_session_token_is_checked_only_if_it_would_be_used(build: Make, server: ModelServer) -> None:
    models = build(auth_token=TOKEN)
    await models.copilot.authenticate(settings_for())
    await models.copilot.authenticate(settings_for(login=TokenLogin("x"), provider=provider(baseUrl=server.url)))

    assert server.requests == []


# --- the sessions own provider ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "model", "wire_name"),
    [
        ({"wireModel": "w", "modelId": "m"}, "s", "w"),
        ({"modelId": "m"}, "s", "m"),
        ({}, "s", "s"),
        ({"modelId": "m"}, None, "m"),
    ],
)
async def test_the_name_on_the_wire_is_the_wire_model_the_model_id_or_the_sessions_model(
    build: Make, fields: dict[str, str], model: str | None, wire_name: str
) -> None:
    resolved = await resolve(build(), model, provider=provider(baseUrl="http://h", **fields))

    assert (resolved.wire_name, resolved.info) == (wire_name, ModelInfo(model or wire_name))


async def test_a_provider_without_a_model_gets_an_error_that_names_the_option(build: Make) -> None:
    with pytest.raises(ConfigError, match=r"needs a model: set model, or provider\.modelId"):
        await resolve(build(), provider=provider(baseUrl="http://h"))


async def test_the_headers_and_the_bearer_token_of_a_provider_are_sent(build: Make, server: ModelServer) -> None:
    options = provider(
        baseUrl=server.url, apiKey="unused", bearerToken=SECRET, headers={"X-Mine": "1"}, modelId="m"
    )
    request = await call(server, build(), provider=options, client_name="editor")

    assert (request.headers["authorization"], request.headers["x-mine"]) == (f"Bearer {SECRET}", "1")
    assert request.headers["user-agent"] == f"jumpseat/{__version__} editor"


async def test_facts_from_the_client_win_over_configured_ones(build: Make) -> None:
    configured = {
        "type": "openai",
        "base_url": "http://h",
        "models": [{"id": "m", "vision": True, "context_window": 5}],
    }
    models = build(adapters={"work": configured})
    known = ModelInfo("work/m", "m", vision=True, context_window=5)

    async def info(capabilities: dict[str, Any] | None) -> ModelInfo:
        overrides = ModelCapabilities.model_validate(capabilities) if capabilities is not None else None
        return (await resolve(models, "work/m", model_capabilities=overrides)).info

    assert await info(None) == await info({}) == await info({"supports": {}, "limits": {}}) == known
    assert await info(
        {"supports": {"vision": False}, "limits": {"max_context_window_tokens": 7, "max_output_tokens": 3}}
    ) == ModelInfo("work/m", "m", vision=False, context_window=7, max_output_tokens=3)


async def test_the_capabilities_of_the_session_win_over_those_of_its_provider(build: Make) -> None:
    options = provider(
        baseUrl="http://h",
        maxPromptTokens=1,
        maxOutputTokens=2,
        maxContextWindowTokens=3,
        modelCapabilities={"supports": {"vision": True}, "limits": {"max_output_tokens": 20}},
    )
    overrides = ModelCapabilities.model_validate({"limits": {"max_context_window_tokens": 30}})
    resolved = await resolve(build(), "m", provider=options, model_capabilities=overrides)

    assert resolved.info == ModelInfo(
        "m", vision=True, max_prompt_tokens=1, max_output_tokens=20, context_window=30
    )


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"type": "telepathy"}, "provider.type: unknown type 'telepathy', expected one of "),
        ({"type": "scripted"}, "the scripted adapter needs a script"),
        (
            {"type": "scripted", "script": {"turns": [{"txt": "x"}]}},
            "provider.script.turns[0].txt: unknown, did you mean 'text'?",
        ),
        ({"type": "scripted", "script": "/nowhere.yaml"}, "cannot read the script '/nowhere.yaml': No such file"),
    ],
)
async def test_an_invalid_provider_is_refused_before_it_is_called(
    build: Make, fields: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(JumpseatError) as caught:
        build().check(settings_for("m", provider=provider(**fields)))

    assert str(caught.value).startswith(complaint)
    assert isinstance(caught.value, InvalidRequestError | ConfigError)


async def test_a_valid_provider_and_none_pass_the_check(build: Make) -> None:
    models = build()
    models.check(settings_for())
    models.check(settings_for(provider=provider(type="openai", baseUrl="http://h", modelId="m")))
    models.check(settings_for(provider=provider(type="anthropic", apiKey="x", modelId="m")))
    models.check(settings_for(provider=provider(type="scripted", script=SCRIPT)))


async def test_a_scripted_provider_needs_no_model_and_its_script_is_shared(build: Make, tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    path.write_text("turns: [{text: hi}]")
    models = build(adapters={"demo": {"type": "scripted", "script": str(path)}})
    options = provider(type="scripted", script=SCRIPT)
    first, second = [await resolve(models, provider=options) for _ in range(2)]
    configured = await resolve(models)

    assert (first.wire_name, first.info, first.model.adapter_name) == (
        "scripted",
        ModelInfo("scripted"),
        "scripted",
    )
    assert first.model is second.model
    assert (configured.info.id, configured.model is first.model) == ("scripted", False)


# --- configured adapters that cannot work -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("adapter", "model", "complaint"),
    [
        ({"type": "telepathy"}, "m", "adapters.work: type: unknown adapter 'telepathy', expected one of "),
        ({}, "m", "adapters.work: type: required, because there is no provider 'work'"),
        (
            {"type": "openai", "base_url": "http://h", "list_models": False},
            None,
            "adapter 'work' declares no models: name a model, or set ",
        ),
        ({"type": "scripted"}, "m", "the scripted adapter needs a script"),
    ],
)
async def test_an_invalid_configured_adapter_reports_the_reason(
    build: Make, adapter: dict[str, Any], model: str | None, complaint: str
) -> None:
    with pytest.raises(JumpseatError) as caught:
        await resolve(build(adapters={"work": adapter}), model)

    assert str(caught.value).startswith(complaint)


# --- lists and secrets --------------------------------------------------------------------------------------------


async def test_the_list_has_aliases_declared_models_and_those_of_copilot(build: Make, server: ModelServer) -> None:
    server.replies.append(COPILOT_MODELS)
    models = await build(auth_token=TOKEN, **two_adapters(server)).catalogue.list()

    assert models == [
        ModelInfo("fast", "fast"),
        ModelInfo("work/gpt", "gpt"),
        ModelInfo("work/mini", "M"),
        ModelInfo("home/gpt", "gpt"),
        ModelInfo("home/llama", "llama"),
        ModelInfo("off", "off", enabled=False),
        FIRST,
        ModelInfo("second", "second"),
    ]


async def test_a_copilot_api_that_does_not_respond_hides_no_other_models(server: ModelServer) -> None:
    server.replies.append(Reply(silent=True, ending="hang"))
    environ = {"COPILOT_API_URL": f"{server.url}/copilot"}
    config = Config.model_validate(two_adapters(server))
    models = Models(config, Options(environ=environ, auth_token=TOKEN), list_timeout_s=0.25)
    with anyio.fail_after(WAIT_S):
        listed = await models.catalogue.list()
    await models.connections.close()

    assert [model.id for model in listed] == ["fast", "work/gpt", "work/mini", "home/gpt", "home/llama"]


async def test_a_token_callback_that_times_out_is_a_typed_error() -> None:
    async def never(_provider: str) -> str:
        await anyio.sleep_forever()
        raise AssertionError("nobody wakes it")

    with pytest.raises(ProviderAuthError, match=r"no bearer token for provider 'mine' within 0\.25 s"):
        await ClientToken("mine", never, timeout_s=0.25)()


async def test_the_list_without_a_token_sends_no_request(build: Make, server: ModelServer) -> None:
    environ = {"OPENAI_API_KEY": SECRET, "OPENAI_MODEL": "gpt"}

    assert await build(environ=environ).catalogue.list() == [ModelInfo("openai/gpt", "gpt")]
    assert server.requests == []


async def test_no_secret_is_in_the_repr_of_models_and_settings(build: Make, server: ModelServer) -> None:
    server.replies.append(COPILOT_MODELS)
    options = provider(baseUrl="http://h", apiKey=SECRET, bearerToken=SECRET, headers={"X": SECRET}, modelId="m")
    models = build(environ={"OPENAI_API_KEY": SECRET}, auth_token=SECRET)
    settings = settings_for(provider=options, login=TokenLogin(SECRET))
    shown = [models, settings, options, await models.resolve(settings), await resolve(models, "first")]

    assert SECRET not in "".join(repr(value) + str(value) for value in shown)


async def test_no_secret_is_in_the_text_of_a_failed_call(build: Make, server: ModelServer) -> None:
    options = provider(baseUrl=server.url, apiKey=SECRET, headers={"X-Mine": "header-secret-1"}, modelId="m")
    resolved = await resolve(build(), provider=options)
    server.replies.append(json_reply({"error": {"message": f"bad key {SECRET} and header-secret-1"}}, status=401))

    with anyio.fail_after(WAIT_S), pytest.raises(ProviderAuthError) as caught:
        async with resolved.model.stream(ModelRequest("m", "", [UserMessage([TextBlock("p")])])) as stream:
            [event async for event in stream]
    text = repr(caught.value) + str(caught.value)
    assert "bad key [redacted]" in text
    assert SECRET not in text
    assert "header-secret-1" not in text


async def test_an_alias_can_refer_to_an_adapter_that_only_the_environment_configures(build: Make) -> None:
    fast = {"fast": {"adapter": "openai", "model": "gpt-mini"}}
    models = build(environ={"OPENAI_API_KEY": "k"}, models=fast)

    assert (await resolve(models, "fast")).wire_name == "gpt-mini"
    with pytest.raises(ConfigError, match="model 'fast' needs the adapter 'openai': set OPENAI_API_KEY"):
        await resolve(build(models=fast), "fast")
