"""The dialect of chat completions that DeepSeek and Kimi share: thinking is switched, and sent back as text.

While a model thinks, both refuse a conversation in which an answer has no ``reasoning_content``, so answers of
other models get one. Both know JSON mode without schemas, so the schema of the answer goes into the system text.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from msgspec.structs import replace

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
"""Efforts that turn thinking off."""

# Not empty: an empty string counts as missing.
_NOTHING_THOUGHT: Final = " "


class ThinkingChatAdapter(ChatAdapter):
    """Text and images, alternating roles, and reasoning in the conversation."""

    has_strict_tools = False
    limits_calls: bool = False

    @abstractmethod
    def thinks(self, request: ModelRequest) -> bool:
        """Return whether the model thinks before it answers ``request``."""

    @abstractmethod
    def sees(self, model: str) -> bool:
        """Return whether ``model`` takes images."""

    def messages(self, endpoint: Endpoint, request: ModelRequest) -> list[JsonObject]:
        vision = request.vision and self.sees(request.model)
        # Merging needs the messages themselves, not their JSON.
        plain = replace(request, system=system_with_schema(request), vision=vision, written=None)
        wire = super().messages(endpoint, plain)
        wire = merge_roles(string_content(map_parts(wire, file_as_note)))
        if self.thinks(request) and self.options(endpoint).get("replay_reasoning", True):
            for message in wire:
                if message["role"] == "assistant":
                    message.setdefault("reasoning_content", _NOTHING_THOUGHT)
        return wire

    def reasoning_to_wire(self, message: AssistantMessage, *, current: bool) -> JsonObject:
        """Write all reasoning, of finished turns too: unneeded reasoning is ignored, missing reasoning refused."""
        own = [
            block.text
            for block in message.blocks
            if isinstance(block, ReasoningBlock) and block.provider == self.signature and block.text
        ]
        return {"reasoning_content": "".join(own)} if own else {}

    def tool_choice_fields(self, choice: ToolChoice) -> JsonObject:
        # The default is not sent, and there is no field for parallel calls.
        return {} if choice.mode == "auto" else {"tool_choice": tool_choice_to_wire(choice)}

    def response_format_to_wire(self, wanted: ResponseFormat) -> JsonObject:
        return {"type": "json_object"}


def must_call(request: ModelRequest) -> bool:
    """Return whether the model has to call a tool, which these models do only while thinking is off."""
    choice = request.tool_choice
    return bool(request.tools) and choice is not None and choice.mode in ("required", "specific")
