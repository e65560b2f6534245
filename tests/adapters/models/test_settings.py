"""Settings of every adapter: their place in the request, which is otherwise unchanged."""

from __future__ import annotations

from typing import Any

import pytest

from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.declared.catalogue import AdapterCatalogue
from jumpseat.adapters.declared.pipeline import DeclaredCaller
from jumpseat.adapters.declared.schema import SchemaEntry, choices_of
from jumpseat.adapters.declared.settings import check_settings, wire_declaration
from jumpseat.adapters.models.wire_caller import WireCaller
from jumpseat.adapters.providers import PROVIDERS, load_adapter
from jumpseat.agent.blocks import TextBlock, UserMessage
from jumpseat.agent.model import ModelRequest
from jumpseat.declared.env import EnvResolver
from jumpseat.errors import InvalidRequestError
from tests.adapters.golden import DATA, check
from tests.support.cases import all_cases

pytestmark = pytest.mark.anyio

ENDPOINT = Endpoint("http://127.0.0.1:1/v1", api_key="k")
MODELS = {"gemini": "gemini-3-flash", "gemini_interactions": "gemini-3-flash", "kimi": "kimi-k3"}


def sample(key: str, entry: SchemaEntry) -> Any:
    """Return a valid value for an entry."""
    match entry.type:
        case "number":
            return 0.5
        case "integer":
            return 8000 if (entry.mapping or "").endswith("max_output_tokens") else 7
        case "boolean":
            return True
        case "enum":
            return choices_of(key, entry, None)[-1].id
        case "list":
            return ["END"]
        case "map":
            return {"sort": "price"} if key == "provider" else {"50256": -100}
        case "string":
            return "auto" if key == "service_tier" else "5m"


def all_of(name: str) -> dict[str, Any]:
    """Return a valid value for every setting of an adapter."""
    return {key: sample(key, entry) for key, entry in wire_declaration(name).settings.items()}


def request(name: str, **fields: Any) -> ModelRequest:
    return ModelRequest(MODELS.get(name, "m"), "s", [UserMessage([TextBlock("hi")])], **fields)


def extending(name: str) -> DeclaredCaller:
    """Return the caller of a declared adapter that only extends ``name``."""
    known = AdapterCatalogue({"mine": {"extends": name}}).get("mine")
    given = {"base_url": ENDPOINT.base_url, "api_key": "k"}
    return DeclaredCaller(known.declaration, known.wire, EnvResolver({}), given, Endpoint(""), kind=known.kind)


@pytest.mark.parametrize(("model", "goes"), [("claude-sonnet-4-5", True), ("claude-opus-4-7", False), ("m", True)])
async def test_sampling_settings_are_sent_only_to_models_of_claude_that_accept_them(model: str, goes: bool) -> None:
    wanted = ModelRequest(model, "s", [UserMessage([TextBlock("hi")])], settings={"temperature": 0.5})
    caller = WireCaller(load_adapter("anthropic"), ENDPOINT)

    if goes:
        assert (await caller.prepare(wanted)).request.body["temperature"] == 0.5
    else:
        with pytest.raises(InvalidRequestError, match="setting 'temperature' is not available for this model"):
            await caller.prepare(wanted)


def test_every_provider_has_settings() -> None:
    assert [name for name, info in PROVIDERS.items() if not info.settings] == []


async def test_every_setting_is_written_where_its_provider_documents_it() -> None:
    with all_cases() as case:
        for name in PROVIDERS:
            with case(name):
                wanted = request(name, settings=all_of(name))
                call = (await WireCaller(load_adapter(name), ENDPOINT).prepare(wanted)).request

                path = DATA / name / "requests" / "settings.json"
                check(path, {"url": call.url, "headers": {}, "body": call.body})
                assert (await extending(name).prepare(wanted)).request.body == call.body


async def test_settings_without_a_value_are_not_sent() -> None:
    with all_cases() as case:
        for name in PROVIDERS:
            for settings in ({}, dict.fromkeys(all_of(name))):
                with case(f"{name}: {settings}"):
                    wanted = request(name, settings=settings)
                    written = load_adapter(name).request(ENDPOINT, request(name))
                    assert (await extending(name).prepare(wanted)).request.body == written.body
                    call = await WireCaller(load_adapter(name), ENDPOINT).prepare(wanted)
                    assert call.request.body == written.body


def test_values_of_a_wrong_type_are_refused_by_name() -> None:
    with all_cases() as case:
        for name in PROVIDERS:
            declaration = wire_declaration(name)
            for key, entry in declaration.settings.items():
                if entry.type != "string":
                    wrong: Any = {"neither": "nor"} if entry.type != "map" else []
                    refused = pytest.raises(InvalidRequestError, match=f"setting '{key}': expected ")
                    with case(f"{name}: {key}"), refused:
                        check_settings(declaration, "m", {key: wrong})


async def test_a_setting_wins_over_an_option_of_the_session() -> None:
    with all_cases() as case:
        for name in PROVIDERS:
            entries = wire_declaration(name).settings
            limit = next(
                (key for key, entry in entries.items() if entry.mapping == "request.max_output_tokens"), None
            )
            with case(name):
                if limit is None:
                    assert name == "ollama"
                    continue
                wanted = request(name, max_output_tokens=500, settings={limit: 900})
                call = (await WireCaller(load_adapter(name), ENDPOINT).prepare(wanted)).request

                expected = load_adapter(name).request(ENDPOINT, request(name, max_output_tokens=900))
                assert call.body == expected.body
