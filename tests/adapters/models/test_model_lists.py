"""Model lists of providers: requested and decoded as documented, cached, and independent of each other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.models.model_lists import KEEP_S, PAUSE_S, FindListEndpoint, ListEndpoint, ModelLists
from jumpseat.adapters.models.resolver import Models
from jumpseat.adapters.providers import PROVIDERS, load_adapter
from jumpseat.adapters.transport.http import HttpTransport
from jumpseat.agent.model import ModelInfo, Price
from jumpseat.agent.settings import SessionSettings
from jumpseat.config import Config
from jumpseat.options import Options
from tests.support.limits import WAIT_S
from tests.support.model_server import ModelServer, Reply, SeenRequest, json_reply

pytestmark = pytest.mark.anyio

KEY = "sk-very-secret"
LISTED = [name for name, info in PROVIDERS.items() if info.listing is not None]


def data(*entries: dict[str, Any], **more: Any) -> Reply:
    return json_reply({"object": "list", "data": list(entries), **more})


def yes(**more: Any) -> dict[str, Any]:
    return {"supported": True, **more}


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def server() -> AsyncGenerator[ModelServer, None]:
    async with ModelServer(lists=True) as server:
        yield server


@pytest.fixture
async def transport() -> AsyncGenerator[HttpTransport, None]:
    async with HttpTransport() as transport:
        yield transport


def at(adapter: str, endpoint: Endpoint) -> FindListEndpoint:
    async def find_endpoint() -> ListEndpoint:
        return ListEndpoint(adapter, endpoint)

    return find_endpoint


async def get_list(transport: HttpTransport, server: ModelServer, adapter: str, base: str, **options: Any) -> Any:
    endpoint = Endpoint(f"{server.url}{base}", api_key=KEY, headers={"X-Mine": "1"}, options=options)
    with anyio.fail_after(WAIT_S):
        found = await ModelLists(lambda: transport).get({"work": at(adapter, endpoint)})
    return found["work"]


# --- requests to each provider ------------------------------------------------------------------------------------


async def test_a_list_of_an_openai_provider_leaves_out_models_that_do_not_chat(
    server: ModelServer, transport: HttpTransport
) -> None:
    names = ["gpt-5", "text-embedding-3-small", "whisper-1", "gpt-image-1", "tts-1", "gpt-4o-realtime", "sora-2"]
    moonshot = {"id": "kimi-k2.6", "context_length": 262144, "supports_image_in": True, "supports_reasoning": True}
    server.replies.append(data(*({"id": name} for name in names), moonshot, {"id": "local", "max_model_len": 4096}))

    assert await get_list(transport, server, "openai", "/v1") == [
        ModelInfo("gpt-5"),
        ModelInfo("kimi-k2.6", vision=True, reasoning=True, context_window=262144),
        ModelInfo("local", context_window=4096),
    ]
    (request,) = server.requests
    assert (request.method, request.path) == ("GET", "/v1/models")
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["x-mine"] == "1"
    assert "content-type" not in request.headers


async def test_the_list_of_anthropic_is_read_page_by_page(server: ModelServer, transport: HttpTransport) -> None:
    able = {
        "image_input": yes(),
        "thinking": yes(types={"adaptive": yes()}),
        "effort": yes(low=yes(), high=yes(), max={"supported": False}),
    }
    first = {"id": "claude-a", "display_name": "A", "max_input_tokens": 9, "max_tokens": 4, "capabilities": able}
    server.replies += [
        data(first, has_more=True, last_id="claude-a"),
        data({"id": "b"}, has_more=False, last_id="b"),
    ]

    assert await get_list(transport, server, "anthropic", "/v1") == [
        ModelInfo(
            "claude-a",
            "A",
            vision=True,
            reasoning=True,
            context_window=9,
            max_output_tokens=4,
            reasoning_efforts=("low", "high"),
        ),
        ModelInfo("b"),
    ]
    assert [request.path for request in server.requests] == [
        "/v1/models?limit=1000",
        "/v1/models?limit=1000&after_id=claude-a",
    ]
    assert server.requests[0].headers["x-api-key"] == KEY
    assert server.requests[0].headers["anthropic-version"]


async def test_the_list_of_gemini_has_the_models_that_generate_content(
    server: ModelServer, transport: HttpTransport
) -> None:
    chats, embeds = ["generateContent", "countTokens"], ["embedContent"]
    first = {
        "name": "models/gemini-2.5-pro",
        "displayName": "Gemini 2.5 Pro",
        "inputTokenLimit": 1048576,
        "outputTokenLimit": 65536,
        "supportedGenerationMethods": chats,
        "thinking": True,
    }
    second = {"name": "models/embedding-001", "supportedGenerationMethods": embeds}
    third = {"name": "models/gemma-3-27b-it", "supportedGenerationMethods": chats}
    server.replies += [
        json_reply({"models": [first, second], "nextPageToken": "a b"}),
        json_reply({"models": [third]}),
    ]

    assert await get_list(transport, server, "gemini", "") == [
        ModelInfo(
            "gemini-2.5-pro", "Gemini 2.5 Pro", reasoning=True, context_window=1048576, max_output_tokens=65536
        ),
        ModelInfo("gemma-3-27b-it"),
    ]
    assert [request.path for request in server.requests] == [
        "/v1beta/models?pageSize=1000",
        "/v1beta/models?pageSize=1000&pageToken=a%20b",
    ]
    assert server.requests[0].headers["x-goog-api-key"] == KEY


async def test_the_list_of_mistral_has_capabilities(server: ModelServer, transport: HttpTransport) -> None:
    able = {"completion_chat": True, "function_calling": True, "vision": False}
    server.replies.append(
        data(
            {"id": "codestral-2508", "capabilities": able, "max_context_length": 256000},
            {"id": "mistral-embed", "capabilities": {"completion_chat": False}},
            {"id": "codestral-2508", "capabilities": able},
        )
    )
    assert await get_list(transport, server, "mistral", "/v1") == [
        ModelInfo("codestral-2508", vision=False, tools=True, context_window=256000)
    ]


async def test_the_list_of_openrouter_has_capabilities_and_prices(
    server: ModelServer, transport: HttpTransport
) -> None:
    text = {"input_modalities": ["text", "image"], "output_modalities": ["text"]}
    server.replies.append(
        data(
            {
                "id": "openai/gpt-5",
                "name": "OpenAI: GPT-5",
                "context_length": 400000,
                "architecture": text,
                "top_provider": {"context_length": 400000, "max_completion_tokens": 128000},
                "supported_parameters": ["tools", "reasoning"],
                "pricing": {"prompt": "0.00000125", "completion": "0.00001", "input_cache_read": "0.000000125"},
            },
            {"id": "openrouter/auto", "pricing": {"prompt": "-1", "completion": "-1"}},
            {"id": "an/image-maker", "architecture": {"output_modalities": ["image"]}},
        )
    )
    assert await get_list(transport, server, "openrouter", "/api/v1") == [
        ModelInfo(
            "openai/gpt-5",
            "OpenAI: GPT-5",
            vision=True,
            tools=True,
            reasoning=True,
            context_window=400000,
            max_output_tokens=128000,
            price=Price(1.25, 10.0, 0.125),
        ),
        ModelInfo("openrouter/auto"),
    ]


async def test_ollama_is_requested_for_the_details_of_every_model(transport: HttpTransport) -> None:
    shown = {
        "qwen3:32b": {
            "capabilities": ["completion", "tools", "thinking"],
            "model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40960},
        },
        "nomic-embed-text": {"capabilities": ["embedding"]},
    }

    def answer(request: SeenRequest) -> Reply:
        if request.path == "/api/tags":
            return json_reply({"models": [{"name": n, "model": n} for n in [*shown, "gone", "run:latest"]]})
        if request.path == "/api/ps":
            return json_reply({"models": [{"model": "run:latest", "context_length": 4096}]})
        assert (request.method, request.path) == ("POST", "/api/show")
        found = shown.get(request.json["model"])
        return json_reply(found) if found else json_reply({"error": "not found"}, status=404)

    async with ModelServer(answer=answer, lists=True) as server:
        found = await get_list(transport, server, "ollama", "")
        narrow = await get_list(transport, server, "ollama", "/api", num_ctx=8192)
    able = ModelInfo("qwen3:32b", vision=False, tools=True, reasoning=True, context_window=40960)
    assert found == [able, ModelInfo("gone"), ModelInfo("run:latest", context_window=4096)]
    assert narrow[0].context_window == 8192


@pytest.mark.parametrize(
    ("entry", "path", "state", "read"),
    [
        (
            {"owned_by": "llamacpp", "meta": {"n_ctx": 16384, "n_ctx_train": 131072}},
            "/props",
            {
                "default_generation_settings": {"n_ctx": 4096},
                "modalities": {"vision": False},
                "chat_template_caps": {"supports_tools": False},
            },
            ModelInfo("m", vision=False, tools=False, context_window=4096),
        ),
        (
            {"owned_by": "library"},
            "/api/ps",
            {"models": [{"name": "m:latest", "context_length": 4096}]},
            ModelInfo("m", context_window=4096),
        ),
        (
            {"owned_by": "organization_owner"},
            "/api/v0/models",
            {"data": [{"id": "m", "max_context_length": 131072, "loaded_context_length": 4096}]},
            ModelInfo("m", context_window=4096),
        ),
        ({"owned_by": "llamacpp"}, "/props", {"error": "no such thing"}, ModelInfo("m")),
    ],
)
async def test_a_local_server_is_asked_for_the_window_of_the_running_model(
    server: ModelServer,
    transport: HttpTransport,
    entry: dict[str, Any],
    path: str,
    state: dict[str, Any],
    read: ModelInfo,
) -> None:
    server.replies += [data({"id": "m", **entry}), json_reply(state)]

    assert await get_list(transport, server, "openai_compatible", "/v1") == [read]
    assert [request.path for request in server.requests] == ["/v1/models", path]


@pytest.mark.parametrize("adapter", LISTED)
async def test_an_invalid_list_is_empty(adapter: str, server: ModelServer, transport: HttpTransport) -> None:
    nonsense: list[Any] = [1, None, {}, {"id": 5, "name": []}, {"id": "", "name": "", "model": ""}]
    for key in ("data", "models"):
        for value in (nonsense, {"a": 1}, "x", None):
            server.replies.append(json_reply({key: value}))
            assert await get_list(transport, server, adapter, "") == []
    assert all(request.headers.get("x-mine") == "1" for request in server.requests)


def test_every_list_belongs_to_an_adapter() -> None:
    assert 0 < len(LISTED) < len(PROVIDERS)
    for adapter in LISTED:
        assert load_adapter(adapter).name == adapter


# --- caching and waiting ------------------------------------------------------------------------------------------


async def test_a_list_is_cached_for_half_an_hour_and_served_while_the_next_is_fetched(
    server: ModelServer, transport: HttpTransport
) -> None:
    clock = Clock()
    providers = {"work": at("openai", Endpoint(server.url))}
    async with anyio.create_task_group() as tasks:
        lists = ModelLists(lambda: transport, tasks, clock=clock)
        with anyio.fail_after(WAIT_S):
            server.replies.append(data({"id": "one"}))
            assert await lists.get(providers) == {"work": [ModelInfo("one")]}
            clock.now += KEEP_S - 1
            assert await lists.get(providers) == {"work": [ModelInfo("one")]}
            assert len(server.requests) == 1
            clock.now += 1
            server.replies.append(data({"id": "two"}))
            assert await lists.get(providers) == {"work": [ModelInfo("one")]}
            # A caller that requires a new list waits for the running request.
            assert await lists.get(providers, refresh=True) == {"work": [ModelInfo("two")]}
            assert len(server.requests) == 2
            server.replies.append(data({"id": "three"}))
            assert await lists.get(providers, refresh=True) == {"work": [ModelInfo("three")]}
        assert lists.find("work", "three") == ModelInfo("three")
        assert lists.find("work", "one") is None
        assert lists.find("other", "three") is None


@pytest.mark.thorough
async def test_a_late_list_is_there_the_next_time(transport: HttpTransport) -> None:
    gate = asyncio.Event()
    body = b'{"data": [{"id": "slow"}]}'
    replies = {
        "/slow/models": Reply([body[:5], body[5:]], gate=gate, headers={"Content-Type": "application/json"}),
        "/quick/models": data({"id": "quick"}),
    }
    async with (
        ModelServer(answer=lambda request: replies[request.path], lists=True) as server,
        anyio.create_task_group() as tasks,
    ):
        clock = Clock()
        lists = ModelLists(lambda: transport, tasks, timeout_s=2, clock=clock)
        providers = {name: at("openai", Endpoint(f"{server.url}/{name}")) for name in ("slow", "quick")}
        with anyio.fail_after(WAIT_S):
            assert await lists.get(providers) == {"slow": [], "quick": [ModelInfo("quick")]}
            # Later calls do not wait again, unless they require a new list.
            clock.now += 2
            lists.timeout_s = 60
            assert (await lists.get(providers))["slow"] == []
            gate.set()
            assert (await lists.get({"slow": providers["slow"]}, refresh=True))["slow"] == [ModelInfo("slow")]
            assert await lists.get(providers) == {"slow": [ModelInfo("slow")], "quick": [ModelInfo("quick")]}
        assert len(server.requests) == 2


async def test_a_failing_provider_keeps_its_last_list_and_is_not_requested_for_a_while(
    server: ModelServer, transport: HttpTransport, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    lists = ModelLists(lambda: transport, clock=clock)
    providers = {
        "work": at("openai", Endpoint(server.url, api_key=KEY)),
        "off": at("openai", Endpoint("http://127.0.0.1:1")),
        "azure": at("azure", Endpoint(server.url)),
    }
    with anyio.fail_after(WAIT_S), caplog.at_level(logging.WARNING):
        server.replies.append(data({"id": "one"}))
        expected = {"work": [ModelInfo("one")], "off": [], "azure": []}
        assert await lists.get(providers) == expected
        clock.now += KEEP_S
        server.replies.append(json_reply({"error": {"message": f"bad key {KEY}"}}, status=401))
        assert await lists.get(providers, refresh=True) == expected
        assert await lists.get(providers) == expected
        assert len(server.requests) == 2
        clock.now += PAUSE_S
        server.replies.append(data({"id": "two"}))
        assert (await lists.get(providers, refresh=True))["work"] == [ModelInfo("two")]
    assert "cannot list the models of work" in caplog.text
    assert KEY not in caplog.text


# --- the list of all models ---------------------------------------------------------------------------------------


def configured(server: ModelServer, **work: Any) -> Models:
    adapters = {
        "work": {"type": "openai", "base_url": f"{server.url}/work", **work},
        "quiet": {"type": "openai", "base_url": f"{server.url}/quiet", "models": ["q"]},
        "keyless": {"type": "openai", "base_url": server.url, "api_key_env": "NOT_SET", "list_models": True},
    }
    return Models(Config.model_validate({"adapters": adapters}), Options(environ={}))


async def test_only_the_selected_providers_are_requested_and_declared_models_come_first(
    server: ModelServer,
) -> None:
    models = configured(
        server,
        list_models=True,
        models=[{"id": "mine", "wire_model": "gpt-5", "vision": False}, {"id": "other", "wire_model": "gpt-5"}],
    )
    server.replies.append(data({"id": "gpt-5", "context_length": 7}, {"id": "new", "max_model_len": 5}))
    with anyio.fail_after(WAIT_S):
        listed = await models.catalogue.list()
        resolved = await models.resolve(SessionSettings.of(Path("/"), model="work/new"))
    await models.connections.close()

    assert [request.path for request in server.requests] == ["/work/models"]
    assert [model.id for model in listed] == ["work/mine", "work/other", "work/new", "quiet/q"]
    mine, other, new, _ = listed
    assert (mine.vision, mine.context_window, mine.tools) == (False, 7, True)
    assert other.vision is True
    assert new == ModelInfo("work/new", "new", context_window=5)
    # The facts of a provider also apply to sessions, without changing requests.
    assert resolved.known.context_window == 5
    assert resolved.info == ModelInfo("work/new", "new")


async def test_no_provider_is_requested_unless_selected(server: ModelServer) -> None:
    models = configured(server, models=["gpt-5"])
    with anyio.fail_after(WAIT_S):
        listed = await models.catalogue.list()
        resolved = await models.resolve(SessionSettings.of(Path("/"), model="work/gpt-5"))
    await models.connections.close()

    assert server.requests == []
    assert listed[0].context_window == 400_000
    assert resolved.known.context_window == 400_000
    assert resolved.info == ModelInfo("work/gpt-5", "gpt-5")


async def test_an_alias_is_listed_with_known_facts_about_its_model(server: ModelServer) -> None:
    adapters = {"work": {"type": "openai", "base_url": server.url, "models": [{"id": "gpt-5", "vision": False}]}}
    aliases = {"fast": {"adapter": "work", "model": "gpt-5"}, "odd": {"adapter": "work", "model": "m"}}
    config = Config.model_validate({"adapters": adapters, "models": aliases})
    models = await Models(config, Options(environ={})).catalogue.list()

    fast, odd, work = models
    assert fast == replace(work, id="fast", name="fast")
    assert (fast.vision, fast.context_window) == (False, 400_000)
    assert odd == ModelInfo("odd", "odd")


async def test_names_with_control_characters_or_excessive_length_are_left_out(
    server: ModelServer, transport: HttpTransport
) -> None:
    odd: list[Any] = [{"id": None}, {"id": 5}, "text", None, [], {"id": "x" * 257}, {"id": "a\n\x1b[31mred"}]
    server.replies.append(json_reply({"data": [*odd, {"id": "ok", "display_name": "\x1b[2J"}, {"id": "ok"}]}))

    assert await get_list(transport, server, "anthropic", "/v1") == [ModelInfo("ok")]


async def test_an_unexpected_error_of_an_adapter_affects_only_its_list(
    transport: HttpTransport, caplog: pytest.LogCaptureFixture
) -> None:
    async def find_endpoint() -> ListEndpoint:
        raise KeyError(KEY)

    with anyio.fail_after(WAIT_S):
        async with anyio.create_task_group() as tasks:
            assert await ModelLists(lambda: transport, tasks).get({"odd": find_endpoint}) == {"odd": []}

    assert "cannot list the models of odd: it failed with KeyError" in caplog.text
    assert KEY not in caplog.text
