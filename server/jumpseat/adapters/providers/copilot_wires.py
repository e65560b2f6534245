"""The other wires of the Copilot model API, for models that chat completions do not serve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.providers.copilot import COPILOT_API_URL, CopilotAdapter, request_headers
from jumpseat.adapters.wires.messages import AnthropicAdapter
from jumpseat.adapters.wires.responses import OpenAIResponsesAdapter
from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model import ModelRequest


class CopilotResponsesAdapter(OpenAIResponsesAdapter):
    """Responses of Copilot."""

    name: ClassVar[str] = "copilot_responses"
    default_base_url: ClassVar[str | None] = COPILOT_API_URL
    key_env: ClassVar[str | None] = CopilotAdapter.key_env
    hosted: ClassVar[Mapping[str, JsonObject]] = {}

    def extra_headers(self, endpoint: Endpoint, request: ModelRequest) -> dict[str, str]:
        return request_headers(endpoint, request)

    def body(self, endpoint: Endpoint, request: ModelRequest) -> JsonObject:
        # All models that are served here alone do reason.
        return super().body(replace(endpoint, options={"reasoning": True, **endpoint.options}), request)


class CopilotMessagesAdapter(AnthropicAdapter):
    """Messages of Copilot. Its blocks are Anthropic's own, and may go to either."""

    name: ClassVar[str] = "copilot_messages"
    signs_as: ClassVar[str | None] = AnthropicAdapter.name
    default_base_url: ClassVar[str | None] = COPILOT_API_URL
    key_env: ClassVar[str | None] = CopilotAdapter.key_env
    hosted: ClassVar[Mapping[str, JsonObject]] = {}

    def extra_headers(self, endpoint: Endpoint, request: ModelRequest) -> dict[str, str]:
        return request_headers(endpoint, request)
