"""A new provider needs only one module in ``adapters/providers``."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Generator
from pathlib import Path

import anyio
import pytest

from jumpseat.adapters import providers
from jumpseat.adapters.declared.settings import check_settings, wire_declaration
from jumpseat.adapters.models.known_adapters import known_adapters
from jumpseat.adapters.models.resolver import Models
from jumpseat.adapters.providers import PROVIDERS, canonical_type, environment_providers, load_adapter
from jumpseat.adapters.transport.http import HttpModel
from jumpseat.agent.blocks import TextBlock, UserMessage
from jumpseat.agent.model import Completed, ModelEvent, ModelRequest
from jumpseat.agent.settings import SessionSettings
from jumpseat.config import Config
from jumpseat.errors import InvalidRequestError
from jumpseat.options import Options
from tests.support.limits import WAIT_S
from tests.support.model_server import ModelServer, event_stream, json_reply

NAME = "throwaway"
MODULE = '''
"""Throwaway: chat completions."""

from jumpseat.adapters.provider import CHAT_LISTING
from jumpseat.adapters.provider import EnvironmentVariables, ProviderInfo
from jumpseat.adapters.wires.settings import seed, temperature

PROVIDER = ProviderInfo(
    type="throwaway",
    aliases=("throw_away",),
    adapter="chat:ChatAdapter",
    default_base_url="https://api.throwaway.example/v1",
    key_variable="THROWAWAY_API_KEY",
    environment=EnvironmentVariables(base_url="THROWAWAY_BASE_URL", model="THROWAWAY_MODEL", rank=99),
    options={"max_tokens_field": "max_completion_tokens"},
    headers={"X-Throwaway": "1"},
    listing=CHAT_LISTING,
    settings={"temperature": temperature(1), "seed": seed()},
)
'''
FACTS = """
[throwaway]
prefixes = ["throwaway"]

[throwaway.models."big"]
name = "Big"
context = 5_000
vision = false
tools = true
reasoning = false
"""
ANSWER = (
    b'data: {"choices": [{"delta": {"content": "Hello"}}]}\n\n',
    b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n',
)


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    (tmp_path / f"{NAME}.py").write_text(MODULE)
    (tmp_path / f"{NAME}.toml").write_text(FACTS)
    monkeypatch.setattr(providers, "__path__", [*providers.__path__, str(tmp_path)])
    importlib.invalidate_caches()
    yield
    sys.modules.pop(f"{providers.__name__}.{NAME}", None)
    if hasattr(providers, NAME):
        delattr(providers, NAME)


def models(url: str) -> Models:
    environ = {"THROWAWAY_API_KEY": "the-key", "THROWAWAY_BASE_URL": url}
    return Models(Config(), Options(environ=environ))


def test_a_new_provider_is_listed_with_its_alias_and_its_variables() -> None:
    assert NAME in list(PROVIDERS)
    assert canonical_type("throw_away") == NAME
    assert list(environment_providers(fallback=True))[-1] == NAME
    assert load_adapter(NAME).name == NAME
    known = known_adapters(models("http://127.0.0.1:1/v1").adapters, Config(), {"THROWAWAY_API_KEY": "the-key"})
    assert [(adapter.key_env, adapter.has_key) for adapter in known if adapter.name == NAME] == [
        ("THROWAWAY_API_KEY", True)
    ]


def test_its_settings_are_checked() -> None:
    check_settings(wire_declaration(NAME), "big", {"temperature": 0.5, "seed": 7})
    with pytest.raises(InvalidRequestError, match="setting 'temperature'"):
        check_settings(wire_declaration(NAME), "big", {"temperature": 1.5})
    with pytest.raises(InvalidRequestError, match="top_k"):
        check_settings(wire_declaration(NAME), "big", {"top_k": 1})


@pytest.mark.anyio
async def test_its_model_answers_with_the_key_of_the_environment() -> None:
    async with ModelServer(event_stream(*ANSWER)) as server:
        found = models(f"{server.url}/v1")
        resolved = await found.resolve(SessionSettings.of(Path("/"), model=f"{NAME}/big"))
        assert isinstance(resolved.model, HttpModel)
        request = ModelRequest(
            resolved.wire_name, "", [UserMessage([TextBlock("Hi")])], max_output_tokens=9, settings={"seed": 7}
        )
        events: list[ModelEvent] = []
        with anyio.fail_after(WAIT_S):
            async with resolved.model.stream(request) as stream:
                events = [event async for event in stream]
        await found.connections.close()

    last = events[-1]
    assert isinstance(last, Completed)
    assert last.message.text() == "Hello"
    [seen] = server.requests
    assert (seen.path, seen.headers["authorization"]) == ("/v1/chat/completions", "Bearer the-key")
    assert seen.headers["x-throwaway"] == "1"
    assert (seen.json["max_completion_tokens"], seen.json["seed"]) == (9, 7)
    assert (resolved.known.context_window, resolved.known.vendor) == (5_000, NAME)


@pytest.mark.anyio
async def test_its_models_are_listed() -> None:
    async with ModelServer(json_reply({"data": [{"id": "big"}, {"id": "small"}]}), lists=True) as server:
        found = models(f"{server.url}/v1")
        with anyio.fail_after(WAIT_S):
            listed = await found.catalogue.of_adapter(NAME)
        await found.connections.close()

    assert [model.id for model in listed] == [f"{NAME}/big", f"{NAME}/small"]
    assert (listed[0].context_window, listed[1].context_window) == (5_000, None)
