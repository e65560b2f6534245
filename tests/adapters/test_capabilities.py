"""The table of what adapters can do, and its reading by model."""

from __future__ import annotations

import pytest

from jumpseat.adapters import ADAPTERS, load_adapter
from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.capabilities import HOSTED, capabilities
from jumpseat.agent.blocks import JsonObject, TextBlock, UserMessage
from jumpseat.agent.model import HostedTool, ModelRequest


def test_the_table_names_adapters_that_there_are() -> None:
    assert HOSTED.keys() <= ADAPTERS.keys()


@pytest.mark.parametrize("name", HOSTED)
def test_an_adapter_writes_every_hosted_tool_it_has_once_with_its_options_and_no_other(name: str) -> None:
    wanted = [HostedTool(tool, {"x_option": 1}) for tool in capabilities(name, "m").hosted_tools]
    request = ModelRequest(
        model="m",
        system="",
        messages=[UserMessage([TextBlock("go")])],
        hosted_tools=[*wanted, HostedTool("nowhere")],
    )
    # What is configured for all sessions does not come twice.
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
def test_whether_the_form_of_an_answer_has_a_field_depends_on_the_model(
    adapter: str, model: str, expected: str
) -> None:
    assert capabilities(adapter, model).structured_output == expected
