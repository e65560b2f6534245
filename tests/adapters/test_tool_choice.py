"""The choice of tools on each provider's wire."""

from __future__ import annotations

from typing import Any, Final

from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.providers import PROVIDERS, load_adapter
from jumpseat.agent.blocks import TextBlock, UserMessage
from jumpseat.agent.model import ModelRequest, ToolChoice, ToolSchema, ToolSpec
from tests.support.cases import all_cases

TOOLS: Final = [ToolSpec(name, "", ToolSchema.of({"type": "object", "properties": {}})) for name in ("add", "mul")]
NAMED: Final = {"type": "function", "function": {"name": "add"}}
CHAT: Final = {
    "auto": {"tool_choice": "auto"},
    "required": {"tool_choice": "required"},
    "none": {"tool_choice": "none"},
    "specific": {"tool_choice": NAMED},
    "one at a time": {"tool_choice": "auto", "parallel_tool_calls": False},
}
RESPONSES: Final = {**CHAT, "specific": {"tool_choice": {"type": "function", "name": "add"}}}
MESSAGES: Final = {
    "auto": {"tool_choice": {"type": "auto"}},
    "required": {"tool_choice": {"type": "any"}},
    "none": {"tool_choice": {"type": "none"}},
    "specific": {"tool_choice": {"type": "tool", "name": "add"}},
    "one at a time": {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
}
# The wire has no field for the default, nor for parallel calls.
UNSAID: Final = {**CHAT, "auto": {}, "one at a time": {}}
WIRES: Final[dict[str, dict[str, dict[str, Any]]]] = {
    "anthropic": MESSAGES,
    "copilot_messages": MESSAGES,
    "openai_responses": RESPONSES,
    "azure_responses": RESPONSES,
    "copilot_responses": RESPONSES,
    "mistral": {**CHAT, "required": {"tool_choice": "any"}},
    "deepseek": UNSAID,
    "kimi": UNSAID,
    "gemini": {
        "auto": {"toolConfig": {"functionCallingConfig": {"mode": "AUTO"}}},
        "required": {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}},
        "none": {"toolConfig": {"functionCallingConfig": {"mode": "NONE"}}},
        "specific": {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["add"]}}},
        "one at a time": {"toolConfig": {"functionCallingConfig": {"mode": "AUTO"}}},
    },
    "gemini_interactions": {
        "auto": {"generation_config": {"tool_choice": "auto"}},
        "required": {"generation_config": {"tool_choice": "any"}},
        "none": {"generation_config": {"tool_choice": "none"}},
        "specific": {
            "generation_config": {"tool_choice": {"allowed_tools": {"mode": "any", "tools": ["add"]}}},
        },
        "one at a time": {"generation_config": {"tool_choice": "auto"}},
    },
    # The wire has no field for the choice: only the list of tools changes.
    "ollama": {"auto": {}, "required": {}, "none": {"tools": None}, "specific": {}, "one at a time": {}},
}
FIELDS: Final = ("tool_choice", "parallel_tool_calls", "toolConfig", "generation_config")


def tool_choice_fields(name: str, choice: ToolChoice) -> dict[str, Any]:
    message = UserMessage([TextBlock("go")])
    request = ModelRequest(model="m", system="", messages=[message], tools=TOOLS, tool_choice=choice)
    body = load_adapter(name).request(Endpoint("http://localhost"), request).body
    found = {field: body[field] for field in FIELDS if field in body}
    return found if "tools" in body else {**found, "tools": None}


def test_every_wire_writes_the_tool_choice_in_its_own_form() -> None:
    choices = {
        "auto": ToolChoice("auto"),
        "required": ToolChoice("required"),
        "none": ToolChoice("none"),
        "specific": ToolChoice("specific", "add"),
        "one at a time": ToolChoice(parallel=False),
    }
    with all_cases() as case:
        for name in PROVIDERS:
            with case(name):
                written = {how: tool_choice_fields(name, choice) for how, choice in choices.items()}
                assert written == WIRES.get(name, CHAT)
