"""Dialects of chat completions by model and by option; the recordings cover the rest."""

from __future__ import annotations

from typing import Any, Final

import pytest

from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.providers import PROVIDERS, load_adapter
from jumpseat.adapters.wires.ollama_chat import address
from jumpseat.agent.blocks import ImageBlock, TextBlock, UserMessage
from jumpseat.agent.model import ModelRequest, ToolChoice
from tests.adapters.conversations import ADD, NOW
from tests.support.cases import all_cases

SWITCHED_OFF: Final = {"thinking": {"type": "disabled"}}
SWITCHED_ON: Final = {"thinking": {"type": "enabled"}}
MUST: Final = ToolChoice("required")
THINKING: Final = ("thinking", "reasoning_effort", "reasoning", "think")


def body(name: str, model: str = "m", options: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    request = ModelRequest(model, "s", [UserMessage([TextBlock("p")])], **fields)
    return load_adapter(name).request(Endpoint("http://local", options=options or {}), request).body


# --- thinking -----------------------------------------------------------------------------------------------------


EFFORTS: Final[list[tuple[str, str, str | None, dict[str, Any]]]] = [
    ("deepseek", "deepseek-v4-flash", None, {}),
    ("deepseek", "deepseek-v4-flash", "max", {**SWITCHED_ON, "reasoning_effort": "max"}),
    ("deepseek", "deepseek-v4-flash", "none", SWITCHED_OFF),
    ("kimi", "kimi-k3", None, {}),
    ("kimi", "kimi-k3", "medium", {"reasoning_effort": "high"}),
    ("kimi", "kimi-k3.1-pro", "xhigh", {"reasoning_effort": "max"}),
    ("kimi", "kimi-k3", "none", {"reasoning_effort": "low"}),
    ("kimi", "kimi-k2.7-code", "high", {}),
    ("kimi", "kimi-k2.7-code", "none", {}),
    ("kimi", "kimi-k2.6", "high", SWITCHED_ON),
    ("kimi", "kimi-k2.6", "none", SWITCHED_OFF),
    ("kimi", "kimi-k2-thinking", "none", {}),
    ("kimi", "moonshot-v1-8k", "high", {}),
    ("mistral", "mistral-small-latest", "none", {"reasoning_effort": "none"}),
    ("mistral", "magistral-medium-latest", "high", {}),
    ("openrouter", "openai/gpt-5.5", "xhigh", {"reasoning": {"effort": "xhigh"}}),
    ("ollama", "qwen3", None, {}),
    ("ollama", "qwen3", "none", {"think": False}),
    ("ollama", "qwen3", "minimal", {"think": "low"}),
    ("ollama", "qwen3", "xhigh", {"think": "max"}),
    ("ollama", "qwen3", "on", {"think": True}),
    ("xai", "grok-4.3", "low", {"reasoning_effort": "low"}),
]


def test_the_reasoning_effort_is_written_in_the_form_of_the_model() -> None:
    with all_cases() as case:
        for name, model, effort, expected in EFFORTS:
            with case(f"{name} {model} {effort}"):
                written = body(name, model, reasoning_effort=effort)

                assert {key: written[key] for key in THINKING if key in written} == expected


def test_openrouter_is_also_requested_for_a_summary() -> None:
    assert body("openrouter", reasoning_summary="concise")["reasoning"] == {"summary": "concise"}


@pytest.mark.parametrize(
    ("name", "model", "expected"),
    [
        ("deepseek", "deepseek-v4-flash", SWITCHED_OFF),
        ("kimi", "kimi-k2.6", SWITCHED_OFF),
        ("kimi", "kimi-k3", {"reasoning_effort": "high"}),
    ],
)
def test_thinking_is_off_with_a_forced_tool_if_the_model_cannot_do_both(
    name: str, model: str, expected: dict[str, Any]
) -> None:
    written = body(name, model, reasoning_effort="high", tools=[NOW], tool_choice=MUST)

    assert written["tool_choice"] == "required"
    assert {key: written[key] for key in THINKING if key in written} == expected


# --- choice of tools ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "choice", "expected"),
    [
        ("deepseek", ToolChoice("auto", parallel=True), {}),
        ("deepseek", ToolChoice("none"), {"tool_choice": "none"}),
        (
            "deepseek",
            ToolChoice("specific", "add"),
            {"tool_choice": {"type": "function", "function": {"name": "add"}}},
        ),
        ("mistral", ToolChoice("required", parallel=False), {"tool_choice": "any", "parallel_tool_calls": False}),
        ("mistral", ToolChoice("none"), {"tool_choice": "none"}),
        ("openrouter", ToolChoice("required"), {"tool_choice": "required"}),
        ("ollama", ToolChoice("required"), {}),
    ],
)
def test_a_tool_choice_is_written_in_the_form_of_the_wire(
    name: str, choice: ToolChoice, expected: dict[str, Any]
) -> None:
    written = body(name, tools=[ADD, NOW], tool_choice=choice)

    assert {key: written[key] for key in ("tool_choice", "parallel_tool_calls") if key in written} == expected
    assert len(written["tools"]) == 2


@pytest.mark.parametrize(
    ("choice", "left"),
    [(ToolChoice("none"), None), (ToolChoice("specific", "now"), ["now"])],
)
def test_ollama_gets_only_the_chosen_tools(choice: ToolChoice, left: list[str] | None) -> None:
    tools = body("ollama", tools=[ADD, NOW], tool_choice=choice).get("tools")

    assert (tools and [tool["function"]["name"] for tool in tools]) == left


# --- images -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "model", "sees"),
    [
        ("kimi", "kimi-k3", True),
        ("kimi", "kimi-k2.6", True),
        ("kimi", "moonshot-v1-8k-vision-preview", True),
        ("kimi", "kimi-k2-0905-preview", False),
        ("kimi", "moonshot-v1-8k", False),
        ("deepseek", "deepseek-v4-pro", False),
        ("mistral", "mistral-small-latest", True),
    ],
)
def test_images_are_sent_to_models_with_vision(name: str, model: str, sees: bool) -> None:
    request = ModelRequest(model, "", [UserMessage([TextBlock("p"), ImageBlock("QQ==", "image/png")])])
    (message,) = load_adapter(name).request(Endpoint("http://local"), request).body["messages"]

    assert message["content"] == (
        [{"type": "text", "text": "p"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}}]
        if sees
        else "p"
    )


# --- options ------------------------------------------------------------------------------------------------------


def test_unknown_options_of_ollama_are_parameters_of_its_model() -> None:
    options = {"num_ctx": 65536, "temperature": 0, "keep_alive": "30m", "body": {"truncate": False}}
    written = body("ollama", options=options, max_output_tokens=10)

    assert written["options"] == {"num_ctx": 65536, "temperature": 0, "num_predict": 10}
    assert (written["keep_alive"], written["truncate"]) == ("30m", False)


def test_mistral_adds_its_safety_prompt_if_configured() -> None:
    assert body("mistral", options={"safe_prompt": True})["safe_prompt"] is True
    assert not {"safe_prompt", "stream_options"} & set(body("mistral"))


def test_openrouters_hosted_tools_are_beside_those_of_the_session() -> None:
    wanted = {"web_search": {"max_results": 3}, "web_fetch": True}
    hosted = [
        {"type": "openrouter:web_search", "parameters": {"max_results": 3}},
        {"type": "openrouter:web_fetch"},
    ]
    assert body("openrouter", options=wanted)["tools"] == hosted
    assert body("openrouter", options=wanted, tools=[NOW])["tools"][1:] == hosted
    assert "tools" not in body("openrouter")


def test_openrouter_caches_for_anthropics_models_and_keeps_a_session_together() -> None:
    claude = body("openrouter", "anthropic/claude-sonnet-5", session_id="session-1")
    other = body("openrouter", "openai/gpt-5.5", session_id="x" * 257)
    uncached = body("openrouter", "anthropic/claude-sonnet-5", options={"prompt_caching": False})

    assert (claude["cache_control"], claude["session_id"]) == ({"type": "ephemeral"}, "session-1")
    assert not {"cache_control", "session_id"} & {*other, *uncached}


def test_openrouter_gets_the_name_of_the_application_if_there_is_one() -> None:
    def headers(**options: Any) -> dict[str, str]:
        endpoint = Endpoint("http://local", options=options)
        sent = load_adapter("openrouter").request(endpoint, ModelRequest("m", "", [])).headers
        return {key: value for key, value in sent.items() if key.startswith(("X-", "HTTP-"))}

    assert headers() == {"X-OpenRouter-Title": "jumpseat"}
    assert headers(title="", referer="https://a.example", categories="cli-agent") == {
        "HTTP-Referer": "https://a.example",
        "X-OpenRouter-Categories": "cli-agent",
    }


def test_options_of_the_endpoint_win_over_those_of_the_dialect() -> None:
    written = body("kimi", options={"max_tokens_field": "max_tokens"}, max_output_tokens=5)

    assert (written.get("max_tokens"), written.get("max_completion_tokens")) == (5, None)


# --- addresses ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("deepseek", "https://api.deepseek.com/chat/completions"),
        ("githubmodels", "https://models.github.ai/inference/chat/completions"),
        ("huggingface", "https://router.huggingface.co/v1/chat/completions"),
        ("kimi", "https://api.moonshot.ai/v1/chat/completions"),
        ("mistral", "https://api.mistral.ai/v1/chat/completions"),
        ("novita", "https://api.novita.ai/openai/v1/chat/completions"),
        ("ollama", "http://localhost:11434/api/chat"),
        ("openrouter", "https://openrouter.ai/api/v1/chat/completions"),
        ("xai", "https://api.x.ai/v1/chat/completions"),
    ],
)
def test_each_provider_is_called_at_its_documented_address(name: str, url: str) -> None:
    base_url = PROVIDERS[name].default_base_url

    assert base_url is not None
    assert load_adapter(name).request(Endpoint(base_url), ModelRequest("m", "", [])).url == url


def test_a_compatible_server_has_no_default_address_or_key() -> None:
    provider = PROVIDERS["openai_compatible"]

    assert (provider.default_base_url, provider.key_variable) == (None, None)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("http://10.0.0.1:8080", "http://10.0.0.1:8080"),
        ("https://ollama.com/", "https://ollama.com"),
        ("ollama.com", "https://ollama.com"),
        ("10.0.0.1", "http://10.0.0.1:11434"),
        ("gpu.example:9000/base", "http://gpu.example:9000/base"),
        (" 0.0.0.0:11434 ", "http://localhost:11434"),
        (":9000", "http://localhost:9000"),
        ("[::]", "http://localhost:11434"),
        ("[fe80::1]:1", "http://[fe80::1]:1"),
    ],
)
def test_every_form_of_ollama_host_is_an_address(host: str, url: str) -> None:
    assert address(host) == url


def test_the_full_address_of_ollamas_api_can_be_given() -> None:
    written = load_adapter("ollama").request(Endpoint("http://h:1/api"), ModelRequest("m", "", []))

    assert written.url == "http://h:1/api/chat"
