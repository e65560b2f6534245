"""The adapter that a session's settings are checked against is the one that its model is called through."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from jumpseat.adapters.models.resolver import Models
from jumpseat.agent.settings import SessionSettings
from jumpseat.config import Config
from jumpseat.declared.catalogue import Found
from jumpseat.errors import ConfigError, InvalidRequestError
from jumpseat.options import Options
from jumpseat_protocol.sessions import NamedProviderConfig, ProviderModelConfig

pytestmark = pytest.mark.anyio

DECLARED_AND_LISTED = {
    "a": {"extends": "anthropic", "schema": {"model": {"choices": ["x"], "default": "x"}}},
    "b": {"type": "openai", "base_url": "http://127.0.0.1:9/v1", "models": ["x"]},
}


def models(adapters: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> Models:
    options = Options(environ={"ANTHROPIC_API_KEY": "k", **(environ or {})}, auto_login=False)
    return Models(Config.model_validate({"adapters": adapters}), options)


def session(model: str | None, adapter_settings: dict[str, Any], **fields: Any) -> SessionSettings:
    return SessionSettings.of(Path("/project"), model=model, adapter_settings=adapter_settings, **fields)


async def test_a_model_of_two_adapters_has_the_settings_of_the_called_one() -> None:
    found = models(DECLARED_AND_LISTED)

    assert (await found.resolve(session("x", {}))).info.id == "a/x"
    found.check(session("x", {"top_k": 3}))
    with pytest.raises(InvalidRequestError, match="frequency_penalty"):
        found.check(session("x", {"frequency_penalty": 1}))


async def test_the_order_of_the_adapters_decides_between_a_declared_and_a_listed_model() -> None:
    found = models(dict(reversed(DECLARED_AND_LISTED.items())))

    assert (await found.resolve(session("x", {}))).info.id == "b/x"
    found.check(session("x", {"frequency_penalty": 1}))
    with pytest.raises(InvalidRequestError, match="top_k"):
        found.check(session("x", {"top_k": 3}))


async def test_a_well_known_model_is_that_of_the_only_adapter_of_its_vendor() -> None:
    adapters = {
        "work": {"type": "openai_responses", "api_key_env": "KEY"},
        "anthropic": {},
        "local": {"type": "openai_compatible", "base_url": "http://127.0.0.1:9/v1"},
    }
    found = models(adapters, {"KEY": "k"})
    for name, expected in (("gpt-4.1", "work/gpt-4.1"), ("claude-sonnet-4-5", "anthropic/claude-sonnet-4-5")):
        assert (await found.resolve(session(name, {}))).info.id == expected
    for name in ("nonsense-model", "qwen3-32b"):
        with pytest.raises(ConfigError, match="name it as 'adapter/model'"):
            await found.resolve(session(name, {}))

    found = models({"openai": {"api_key_env": "KEY"}, **adapters}, {"KEY": "k"})
    with pytest.raises(ConfigError, match=r"did you mean 'openai/gpt-4\.1' or 'work/gpt-4\.1'"):
        await found.resolve(session("gpt-4.1", {}))


async def test_settings_are_checked_at_the_call_if_a_function_lists_the_models() -> None:
    def choices(_adapter: object) -> list[str]:
        return ["x"]

    listing = {"extends": "anthropic", "schema": {"model": {"choices": choices, "default": "x"}}}
    found = models(DECLARED_AND_LISTED)
    listed = Found("a", "configuration", "adapters.a", listing)
    found.adapters.catalogue.configured = {**found.adapters.catalogue.configured, "a": listed}

    found.check(session("x", {"frequency_penalty": 1}))
    assert (await found.resolve(session("x", {}))).info.id == "a/x"
    with pytest.raises(InvalidRequestError, match="frequency_penalty"):
        found.check(session("x", {"frequency_penalty": 1}))


async def test_a_session_with_named_providers_and_no_model_has_the_settings_of_the_first() -> None:
    found = models({}, {"MISTRAL_API_KEY": "k", "ANTHROPIC_API_KEY": ""})
    provider = NamedProviderConfig(name="mine", type="anthropic", base_url="http://127.0.0.1:9", api_key="k")
    own = {"providers": [provider], "models": [ProviderModelConfig(id="m", provider="mine")]}

    assert (await found.resolve(session(None, {}, **own))).info.id == "mine/m"
    found.check(session(None, {"top_k": 3}, **own))
    with pytest.raises(InvalidRequestError, match="safe_prompt"):
        found.check(session(None, {"safe_prompt": True}, **own))
