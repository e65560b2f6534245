"""The wire of a session's model: types, named providers, models of Copilot, tokens from the client."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest

from jumpseat.adapters.models.resolver import Models
from jumpseat.agent.blocks import TextBlock, UserMessage
from jumpseat.agent.interfaces import AskToken
from jumpseat.agent.model import ModelInfo, ModelRequest
from jumpseat.agent.settings import SessionSettings
from jumpseat.config import Config
from jumpseat.errors import ClientCallError, ConfigError, InvalidRequestError, ProviderAuthError
from jumpseat.options import Options
from jumpseat_protocol.sessions import NamedProviderConfig, ProviderConfig, ProviderModelConfig, SessionOptions
from tests.support.limits import WAIT_S
from tests.support.model_server import ModelServer, SeenRequest, json_reply, text_reply

pytestmark = pytest.mark.anyio

CHAT = json_reply({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]})
RESPONSE = json_reply({"status": "completed", "output": []})
MESSAGE = json_reply({"content": [], "stop_reason": "end_turn"})
GEMINI: dict[str, Any] = {
    "gemini": {"candidates": [{"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"}]},
    "gemini_interactions": {"status": "completed", "steps": []},
}


@pytest.fixture
async def server() -> AsyncGenerator[ModelServer]:
    async with ModelServer(lists=True) as server:
        yield server


@pytest.fixture
async def models() -> AsyncGenerator[Models]:
    models = Models(Config(), Options(environ={}))
    yield models
    await models.connections.close()


def settings(model: str | None = None, **options: Any) -> SessionSettings:
    read = SessionOptions.model_validate(options)
    return SessionSettings.of(
        Path("/project"),
        model=model,
        provider=read.provider,
        providers=read.providers,
        models=read.models,
    )


def registry(server: ModelServer, **more: Any) -> dict[str, Any]:
    return {
        "providers": [
            {"name": "alpha", "baseUrl": f"{server.url}/alpha/v1/", "apiKey": "alpha-key", "headers": {"X-P": "a"}},
            {"name": "beta", "type": "anthropic", "baseUrl": f"{server.url}/beta", "bearerToken": "beta-token"},
            {"name": "gamma", "wireApi": "responses", "baseUrl": f"{server.url}/gamma"},
        ],
        "models": [
            {"id": "sonnet", "provider": "alpha", "wireModel": "w", "modelId": "base", "maxPromptTokens": 11},
            {"id": "haiku", "provider": "alpha", "modelId": "base", "name": "Haiku"},
            {"id": "haiku", "provider": "beta", "capabilities": {"supports": {"vision": False}}},
            {"id": "o/1", "provider": "gamma"},
        ],
        **more,
    }


async def call(
    server: ModelServer, models: Models, wanted: SessionSettings, ask_token: AskToken | None = None
) -> SeenRequest:
    """Return the request that a session with these settings sends."""
    models.check(wanted)
    resolved = await models.resolve(wanted, ask_token=ask_token)
    request = ModelRequest(resolved.wire_name, "", [UserMessage([TextBlock("p")])], stream=False)
    name = resolved.model.adapter_name
    server.replies.append(MESSAGE if name == "anthropic" else RESPONSE if name.endswith("responses") else CHAT)
    with anyio.fail_after(WAIT_S):
        async with resolved.model.stream(request) as stream:
            assert len([event async for event in stream]) == 1
    return server.requests[-1]


@pytest.mark.parametrize(
    ("provider", "path"),
    [
        ({}, "/chat/completions"),
        ({"wireApi": "completions"}, "/chat/completions"),
        ({"wireApi": "responses"}, "/responses"),
        ({"type": "openai_responses"}, "/responses"),
        ({"type": "azure"}, "/openai/v1/chat/completions"),
        ({"type": "azure_openai"}, "/openai/v1/chat/completions"),
        ({"type": "azure", "wireApi": "responses"}, "/openai/v1/responses"),
        (
            {"type": "azure", "azure": {"apiVersion": "2024-10-21"}},
            "/openai/deployments/m/chat/completions?api-version=2024-10-21",
        ),
        ({"type": "anthropic"}, "/v1/messages"),
    ],
)
async def test_the_type_and_the_wire_of_a_provider_choose_its_adapter(
    server: ModelServer, models: Models, provider: dict[str, Any], path: str
) -> None:
    request = await call(server, models, settings("m", provider={"baseUrl": server.url, "apiKey": "k", **provider}))

    assert (request.path, request.json["model"]) == (path, "m")


@pytest.mark.parametrize(
    ("selection", "path", "wire_name"),
    [
        ("alpha/sonnet", "/alpha/v1/chat/completions", "w"),
        ("alpha/haiku", "/alpha/v1/chat/completions", "base"),
        ("beta/haiku", "/beta/v1/messages", "haiku"),
        ("gamma/o/1", "/gamma/responses", "o/1"),
        ("alpha/not declared", "/alpha/v1/chat/completions", "not declared"),
    ],
)
async def test_a_model_of_a_named_provider_is_called_by_its_wire_name(
    server: ModelServer, models: Models, selection: str, path: str, wire_name: str
) -> None:
    own = {"type": "openai", "baseUrl": f"{server.url}/own"}
    request = await call(server, models, settings(selection, **registry(server, provider=own)))

    assert (request.path, request.json["model"]) == (path, wire_name)


@pytest.mark.parametrize(
    ("kind", "path"),
    [("gemini", "/own/models/m:generateContent"), ("gemini_interactions", "/own/interactions")],
)
async def test_a_gemini_provider_is_called_at_its_base_url_with_the_key_in_its_header(
    server: ModelServer, models: Models, kind: str, path: str
) -> None:
    server.replies.append(json_reply(GEMINI[kind]))
    own = {"type": kind, "baseUrl": f"{server.url}/own/", "apiKey": "k"}
    resolved = await models.resolve(settings("m", provider=own))
    async with resolved.model.stream(ModelRequest(resolved.wire_name, "", [], stream=False)) as stream:
        assert len([event async for event in stream]) == 1

    assert (server.requests[-1].path, server.requests[-1].headers["x-goog-api-key"]) == (path, "k")


COPILOT_MODELS: dict[str, Any] = {
    "data": [
        {"id": "chat", "supported_endpoints": ["/chat/completions", "/responses"]},
        {"id": "responses", "supported_endpoints": ["/responses", "ws:/responses"]},
        {"id": "messages", "supported_endpoints": ["/v1/messages"]},
        {"id": "other", "supported_endpoints": ["/v2/other"]},
    ]
}


async def test_a_copilot_provider_of_a_session_uses_the_wire_in_the_list_of_models(models: Models) -> None:
    bodies = {"/v1/messages": MESSAGE, "/responses": RESPONSE, "/models": json_reply(COPILOT_MODELS)}

    async with ModelServer(answer=lambda request: bodies.get(request.path, CHAT), lists=True) as server:
        own = {"type": "copilot", "baseUrl": server.url, "apiKey": "k"}
        for model in ("chat", "responses", "messages", "unlisted"):
            await call(server, models, settings(model, provider=own))
        await call(server, models, settings("responses", provider={**own, "wireApi": "completions"}))
        named = [{"name": "mine", **own}]
        await call(server, models, settings("mine/responses", providers=named))
        with pytest.raises(ConfigError, match="serves model 'other' only by unsupported endpoints: /v2/other"):
            await models.resolve(settings("other", provider=own))

    assert [request.path for request in server.requests] == [
        "/models",
        "/chat/completions",
        "/responses",
        "/v1/messages",
        "/chat/completions",
        "/chat/completions",
        "/responses",
    ]
    assert server.requests[0].headers["authorization"] == "Bearer k"


async def test_a_copilot_provider_without_a_list_of_models_is_called_by_chat_completions(models: Models) -> None:
    missing = text_reply("not found", status=404)
    async with ModelServer(
        answer=lambda request: missing if request.method == "GET" else CHAT, lists=True
    ) as server:
        own = {"type": "copilot", "baseUrl": server.url, "apiKey": "k"}
        for _ in range(2):
            await call(server, models, settings("m", provider=own))

    assert [request.path for request in server.requests] == ["/models", "/chat/completions", "/chat/completions"]


@pytest.mark.parametrize("kind", ["gemini", "gemini_interactions"])
async def test_the_endpoint_of_a_wire_without_a_name_in_the_protocol_is_refused(kind: str) -> None:
    models = Models(Config(), Options(environ={"COPILOT_ALLOW_GET_PROVIDER_ENDPOINT": "true"}))
    with pytest.raises(InvalidRequestError, match="which has no endpoint for clients"):
        await models.endpoint(settings("m", provider={"type": kind, "apiKey": "k"}))
    await models.connections.close()


async def test_the_well_known_key_of_gemini_configures_its_adapter(server: ModelServer) -> None:
    environ = {"GEMINI_API_KEY": "k", "GEMINI_BASE_URL": server.url, "GEMINI_MODEL": "gemini-pro-latest"}
    models = Models(Config(), Options(environ=environ))
    server.replies.append(json_reply(GEMINI["gemini"]))
    resolved = await models.resolve(settings())
    async with resolved.model.stream(ModelRequest(resolved.wire_name, "", [], stream=False)) as stream:
        assert len([event async for event in stream]) == 1
    await models.connections.close()

    assert server.requests[-1].path == "/v1beta/models/gemini-pro-latest:generateContent"
    assert server.requests[-1].headers["x-goog-api-key"] == "k"


async def test_named_providers_keep_their_keys_and_headers_apart(server: ModelServer, models: Models) -> None:
    alpha = await call(server, models, settings("alpha/sonnet", **registry(server)))
    beta = await call(server, models, settings("beta/haiku", **registry(server)))

    assert (alpha.headers["authorization"], alpha.headers["x-p"]) == ("Bearer alpha-key", "a")
    assert (beta.headers["authorization"], beta.headers.get("x-p")) == ("Bearer beta-token", None)


async def test_any_other_name_resolves_to_the_single_provider_of_the_session(
    server: ModelServer, models: Models
) -> None:
    own = {"type": "openai", "baseUrl": f"{server.url}/own"}
    request = await call(server, models, settings("delta/x", **registry(server, provider=own)))

    assert (request.path, request.json["model"]) == ("/own/chat/completions", "delta/x")


async def test_the_models_of_a_session_are_listed_as_they_are_selected(server: ModelServer, models: Models) -> None:
    wanted = settings("alpha/sonnet", **registry(server))

    assert await models.of_session(wanted) == [
        ModelInfo("alpha/sonnet", "alpha/sonnet", max_prompt_tokens=11),
        ModelInfo("alpha/haiku", "Haiku"),
        ModelInfo("beta/haiku", "beta/haiku", vision=False),
        ModelInfo("gamma/o/1", "gamma/o/1"),
    ]
    assert (await models.resolve(wanted)).info == ModelInfo("alpha/sonnet", "alpha/sonnet", max_prompt_tokens=11)


async def test_without_any_default_the_first_registered_model_is_used(server: ModelServer, models: Models) -> None:
    assert await models.default_name(settings(**registry(server))) == "alpha/sonnet"

    configured = Models(
        Config.model_validate({"adapters": {"mine": {"type": "openai", "models": ["own"]}}}),
        Options(environ={}),
    )
    assert await configured.default_name(settings(**registry(server))) == "mine/own"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"providers": [{"name": "a", "type": "x"}]},
            r"^providers\.a\.type: unknown type 'x', expected one of anthropic",
        ),
        (
            {"providers": [{"name": "a", "type": "azure"}]},
            r"^providers\.a\.baseUrl is required for provider type 'azure'$",
        ),
        (
            {"provider": {"type": "anthropic", "wireApi": "responses"}},
            r"^provider\.wireApi 'responses' is not supported by provider type 'anthropic'$",
        ),
        ({"providers": [{"name": "a"}, {"name": "a"}]}, r"^providers: duplicate name 'a'$"),
        (
            {"providers": [{"name": "a"}], "models": [{"id": "m", "provider": "b"}]},
            r"^models\.m: unknown provider 'b', expected one of: a$",
        ),
        (
            {"providers": [{"name": "a"}], "models": [{"id": "m", "provider": "a"}] * 2},
            r"^models: duplicate model 'a/m'$",
        ),
    ],
)
async def test_an_invalid_registry_is_refused_at_once(
    models: Models, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        models.check(settings(**options))


def test_the_name_of_a_provider_has_no_slash() -> None:
    with pytest.raises(ValueError, match="name"):
        NamedProviderConfig.model_validate({"name": "a/b"})


async def test_a_model_without_its_provider_is_an_error(models: Models) -> None:
    wanted = SessionSettings.of(Path("/project"), model="a/m", models=[ProviderModelConfig(id="m", provider="a")])
    with pytest.raises(ConfigError, match="model 'a/m': there is no provider 'a'"):
        await models.resolve(wanted)


# --- tokens from the client ---------------------------------------------------------------------------------------


async def test_a_token_is_requested_from_the_client_before_every_request(
    server: ModelServer, models: Models
) -> None:
    providers_asked: list[str] = []

    async def ask_token(name: str) -> str:
        providers_asked.append(name)
        return f"token-{len(providers_asked)}"

    keyed = {"baseUrl": server.url, "apiKey": "k", "bearerToken": "old", "hasBearerTokenProvider": True}
    resolved = await models.resolve(settings("m", provider=keyed), ask_token=ask_token)
    for _ in range(2):
        server.replies.append(CHAT)
        async with resolved.model.stream(ModelRequest("m", "", [], stream=False)) as stream:
            assert len([event async for event in stream]) == 1
    named = settings("mine/m", providers=[{"name": "mine", "type": "azure", **keyed}])
    await call(server, models, named, ask_token)

    assert providers_asked == ["default", "default", "mine"]
    assert [request.headers["authorization"] for request in server.requests] == [
        "Bearer token-1",
        "Bearer token-2",
        "Bearer token-3",
    ]
    assert not any("api-key" in request.headers for request in server.requests)


async def test_no_token_is_requested_for_a_provider_with_its_own(server: ModelServer, models: Models) -> None:
    async def ask_token(name: str) -> str:
        raise AssertionError(name)

    request = await call(
        server, models, settings("m", provider={"baseUrl": server.url, "bearerToken": "t"}), ask_token
    )

    assert request.headers["authorization"] == "Bearer t"


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (
            ClientCallError("the client is gone"),
            "the client returned no bearer token for provider 'default': the client is gone",
        ),
        (RuntimeError(), "the client returned no bearer token for provider 'default': RuntimeError"),
        (
            ClientCallError("cannot renew ghp_0123456789abcdef0123"),
            "the client returned no bearer token for provider 'default': cannot renew [redacted]",
        ),
        ("", "the client returned an empty bearer token for provider 'default'"),
        (None, "no client can provide the bearer token of provider 'default'"),
    ],
)
async def test_a_missing_token_is_an_authentication_error(
    models: Models, failure: Exception | str | None, text: str
) -> None:
    async def ask_token(name: str) -> str:
        if isinstance(failure, Exception):
            raise failure
        return ""

    provider = ProviderConfig(base_url="http://127.0.0.1:1", api_key="static-key", has_bearer_token_provider=True)
    wanted = SessionSettings.of(Path("/project"), model="m", provider=provider)
    resolved = await models.resolve(wanted, ask_token=None if failure is None else ask_token)
    with pytest.raises(ProviderAuthError) as caught:
        async with resolved.model.stream(ModelRequest("m", "", [])):
            pass

    assert str(caught.value) == text
    assert caught.value.retryable is False


# --- the Copilot API ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("endpoints", "path", "answer"),
    [
        (None, "/chat/completions", CHAT),
        (["/chat/completions", "/responses"], "/chat/completions", CHAT),
        (["/v1/messages", "/chat/completions"], "/chat/completions", CHAT),
        (["/responses", "ws:/responses"], "/responses", RESPONSE),
        (["/v1/messages"], "/v1/messages", MESSAGE),
    ],
)
async def test_a_copilot_model_is_called_over_a_wire_that_serves_it(
    server: ModelServer, endpoints: list[str] | None, path: str, answer: Any
) -> None:
    environ = {"COPILOT_API_URL": server.url, "GH_TOKEN": "t"}
    server.replies += [json_reply({"data": [{"id": "m", "supported_endpoints": endpoints}]}), answer]
    models = Models(Config(), Options(environ=environ))
    with anyio.fail_after(WAIT_S):
        resolved = await models.resolve(settings("m"))
        async with resolved.model.stream(ModelRequest("m", "", [], stream=False)) as stream:
            assert len([event async for event in stream]) == 1
        await models.connections.close()

    request = server.requests[-1]
    assert (request.path, request.headers["authorization"]) == (path, "Bearer t")
    assert {"copilot-integration-id", "x-github-api-version", "x-initiator"} <= set(request.headers)


async def test_a_copilot_model_without_a_known_wire_is_an_error(server: ModelServer) -> None:
    environ = {"COPILOT_API_URL": server.url, "GH_TOKEN": "t"}
    server.replies.append(json_reply({"data": [{"id": "m", "supported_endpoints": ["ws:/other"]}]}))
    models = Models(Config(), Options(environ=environ))
    with pytest.raises(ConfigError, match="'m' only by unsupported endpoints: ws:/other"), anyio.fail_after(WAIT_S):
        await models.resolve(settings("m"))
    await models.connections.close()
