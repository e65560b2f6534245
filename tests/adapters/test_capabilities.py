"""Capabilities of adapters and their models."""

from __future__ import annotations

from pathlib import Path

import pytest

from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.capabilities import capabilities
from jumpseat.adapters.models.resolver import Models
from jumpseat.adapters.providers import PROVIDERS, load_adapter
from jumpseat.adapters.transport.http import HttpModel
from jumpseat.agent.blocks import JsonObject, TextBlock, UserMessage
from jumpseat.agent.model import HostedTool, ModelRequest
from jumpseat.agent.settings import SessionSettings
from jumpseat.config import Config
from jumpseat.options import Options

HOSTING = [name for name in PROVIDERS if capabilities(load_adapter(name), "m").hosted_tools]


def test_these_adapters_have_hosted_tools() -> None:
    assert HOSTING == [
        "anthropic",
        "azure_responses",
        "gemini",
        "gemini_interactions",
        "openai_responses",
        "openrouter",
    ]


@pytest.mark.parametrize("name", HOSTING)
def test_an_adapter_writes_exactly_its_hosted_tools_once_with_their_options(name: str) -> None:
    wanted = [HostedTool(tool, {"x_option": 1}) for tool in capabilities(load_adapter(name), "m").hosted_tools]
    request = ModelRequest(
        model="m",
        system="",
        messages=[UserMessage([TextBlock("go")])],
        hosted_tools=[*wanted, HostedTool("nowhere")],
    )
    # Tools configured for all sessions are not sent twice.
    configured = {"gemini": "google_search", "gemini_interactions": "google_search"}.get(
        name, {"type": "web_search"}
    )
    options = {"hosted_tools": [configured], "web_search": True}
    tools: list[JsonObject] = (
        load_adapter(name).request(Endpoint("http://h", options=options), request).body["tools"]
    )
    assert len(tools) == len(wanted)
    assert all("x_option" in str(tool) for tool in tools)


@pytest.mark.parametrize(
    ("adapter", "model", "expected"),
    [
        ("anthropic", "claude-sonnet-4-5", "always"),
        ("anthropic", "claude-opus-4-1-20250805", "always"),
        ("anthropic", "claude-fable-5", "always"),
        ("anthropic", "claude-sonnet-4-20250514", "never"),
        ("anthropic", "claude-3-7-sonnet-latest", "never"),
        ("anthropic", "kimi-k3", "never"),
        ("gemini", "gemini-2.5-flash", "without_tools"),
        ("gemini", "gemini-3.1-pro-preview", "always"),
        ("gemini", "gemini-flash-latest", "always"),
        ("openai", "gpt-5", "always"),
    ],
)
def test_the_model_decides_whether_the_response_format_has_a_field(adapter: str, model: str, expected: str) -> None:
    assert capabilities(load_adapter(adapter), model).structured_output == expected


@pytest.mark.anyio
@pytest.mark.parametrize("name", HOSTING)
async def test_a_declared_adapter_has_the_capabilities_of_the_extended_one(name: str) -> None:
    table = {"extends": name, "env": {"base_url": "http://h", "api_key": "k"}}
    config = Config.model_validate({"adapters": {"mine": table}})
    models = Models(config, Options(environ={}))
    model = "gemini-2.5-flash" if "gemini" in name else "claude-sonnet-4-5"
    found = (await models.resolve(SessionSettings.of(Path("/"), model=f"mine/{model}"))).model
    await models.connections.close()

    assert isinstance(found, HttpModel)
    assert found.capabilities(model) == capabilities(load_adapter(name), model)
    request = ModelRequest(model, "", [UserMessage([TextBlock("go")])], hosted_tools=[HostedTool("web_search")])
    call, _ = await found.prepare(request)
    assert len(call.body["tools"]) == 1
