"""Chat completions where thinking is a switch and goes back to the model as text: what DeepSeek and Kimi share.

Both refuse a conversation in which an answer has no ``reasoning_content`` while the model thinks, so that answers
of other models get one. Both know JSON without a schema only, so that the schema goes into the system text.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Final

from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.wires.chat import ChatAdapter, tool_choice_to_wire
from jumpseat.adapters.wires.chat_quirks import (
    file_as_note,
    map_parts,
    merge_roles,
    string_content,
    system_with_schema,
)
from jumpseat.agent.blocks import AssistantMessage, JsonObject, ReasoningBlock
from jumpseat.agent.model import ModelRequest, ResponseFormat, ToolChoice

OFF: Final = frozenset({"none", "off", "disabled"})
"""Efforts that mean: do not think."""

# Not empty, because empty counts as missing.
_NOTHING_THOUGHT: Final = " "


class ThinkingChatAdapter(ChatAdapter):
    """Text and images, roles that alternate, reasoning that goes back."""

    @abstractmethod
    def thinks(self, request: ModelRequest) -> bool:
        """Whether the model will think about ``request``."""

    @abstractmethod
    def sees(self, model: str) -> bool:
        """Whether ``model`` takes images."""

    def messages(self, endpoint: Endpoint, request: ModelRequest) -> list[JsonObject]:
        vision = request.vision and self.sees(request.model)
        plain = replace(request, system=system_with_schema(request), vision=vision)
        wire = super().messages(endpoint, plain)
        wire = merge_roles(string_content(map_parts(wire, file_as_note)))
        if self.thinks(request) and self.options(endpoint).get("replay_reasoning", True):
            for message in wire:
                if message["role"] == "assistant":
                    message.setdefault("reasoning_content", _NOTHING_THOUGHT)
        return wire

    def reasoning_to_wire(self, message: AssistantMessage, *, current: bool) -> JsonObject:
        """All of it, of finished turns too: what is not needed is ignored, what is missing is refused."""
        own = [
            block.text
            for block in message.blocks
            if isinstance(block, ReasoningBlock) and block.provider == self.signature and block.text
        ]
        return {"reasoning_content": "".join(own)} if own else {}

    def tool_choice_fields(self, choice: ToolChoice) -> JsonObject:
        # The default is left unsaid, and there is no field for calls in parallel.
        return {} if choice.mode == "auto" else {"tool_choice": tool_choice_to_wire(choice)}

    def response_format_to_wire(self, wanted: ResponseFormat) -> JsonObject:
        return {"type": "json_object"}


def must_call(request: ModelRequest) -> bool:
    """Whether the model has to call a tool, which these models do only while they do not think."""
    choice = request.tool_choice
    return bool(request.tools) and choice is not None and choice.mode in ("required", "specific")
