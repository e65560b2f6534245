"""The wires of the Copilot model API: those of OpenAI and Anthropic, with the headers that the API expects.

The option ``integration_id`` of the endpoint names the product that calls, for accounts whose organisation admits
certain products only. The other options are those of each wire.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.wires.chat import ChatAdapter
from jumpseat.adapters.wires.messages import MessagesAdapter
from jumpseat.adapters.wires.responses import ResponsesAdapter
from jumpseat.agent.blocks import ImageBlock, JsonObject, ToolMessage, UserMessage
from jumpseat.agent.model import ModelRequest

API_VERSION: Final = "2025-10-01"

_INTEGRATION: Final = "vscode-chat"


OPTIONS: Final = frozenset({"integration_id"}).union(
    ChatAdapter.option_names, ResponsesAdapter.option_names, MessagesAdapter.option_names
)
"""The model decides which of the wires is used, and the options are those of all."""


class CopilotChatAdapter(ChatAdapter):
    """Chat completions of Copilot."""

    option_names = OPTIONS
    reports_cost: bool = True

    def extra_headers(self, endpoint: Endpoint, request: ModelRequest) -> Mapping[str, str]:
        return request_headers(self.options(endpoint), request)


class CopilotResponsesAdapter(ResponsesAdapter):
    """Responses of Copilot, for models that chat completions do not serve. There are no hosted tools."""

    option_names = OPTIONS
    reports_cost: bool = True

    hosted: Mapping[str, JsonObject] = {}

    def extra_headers(self, endpoint: Endpoint, request: ModelRequest) -> Mapping[str, str]:
        return request_headers(self.options(endpoint), request)


class CopilotMessagesAdapter(MessagesAdapter):
    """Messages of Copilot. Its blocks are signed as Anthropic's, because both APIs accept them."""

    option_names = OPTIONS
    reports_cost: bool = True

    signs_as: str | None = "anthropic"
    hosted: Mapping[str, JsonObject] = {}

    def extra_headers(self, endpoint: Endpoint, request: ModelRequest) -> Mapping[str, str]:
        return request_headers(self.options(endpoint), request)


def api_headers(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers of every request to the model API."""
    return {
        "Copilot-Integration-Id": str(options.get("integration_id", _INTEGRATION)),
        "X-GitHub-Api-Version": API_VERSION,
    }


def request_headers(options: Mapping[str, Any], request: ModelRequest) -> dict[str, str]:
    """Return the headers of a model call on any wire."""
    headers = api_headers(options)
    headers["Openai-Intent"] = "conversation-agent"
    # A call after a tool result is the agent's own, and not counted as a request of the user.
    follows_tool = bool(request.messages) and isinstance(request.messages[-1], ToolMessage)
    headers["X-Initiator"] = "agent" if follows_tool or request.unasked else "user"
    if request.agent is not None:
        headers["X-Interaction-Type"] = "conversation-subagent"
    if request.interaction_id is not None:
        headers["X-Interaction-Id"] = request.interaction_id
    if request.vision and _has_images(request):
        headers["Copilot-Vision-Request"] = "true"
    return headers


def _has_images(request: ModelRequest) -> bool:
    for message in request.messages:
        if isinstance(message, UserMessage):
            if any(isinstance(block, ImageBlock) for block in message.blocks):
                return True
        elif isinstance(message, ToolMessage) and any(result.images for result in message.results):
            return True
    return False
