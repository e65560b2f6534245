"""Mistral: chat completions whose content may be a list of parts, thinking among them.

Mistral refuses unknown fields, call ids that are not nine letters and digits, a user message right after a tool
result, and answers without content.

Options of the endpoint, besides those of chat completions:

=================== ============= ==========================================================
option              default       meaning
=================== ============= ==========================================================
``safe_prompt``     not sent      whether Mistral puts its safety prompt before the conversation
=================== ============= ==========================================================
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from jumpseat.adapters.adapter import Decoder, Endpoint
from jumpseat.adapters.wire import as_list, as_object, as_text
from jumpseat.adapters.wires.chat import ChatAdapter, image_parts
from jumpseat.adapters.wires.chat_decoder import ChatDecoder
from jumpseat.adapters.wires.chat_quirks import answer_before_user, map_parts, merge_roles, short_id
from jumpseat.agent.blocks import AssistantMessage, JsonObject, ReasoningBlock, ToolMessage, ToolUseBlock
from jumpseat.agent.model import ModelEvent, ModelRequest, ToolChoice

# The answer to insert where a turn was cut off between a tool result and the next prompt.
_INTERRUPTED: Final = "(I was interrupted.)"

# Models that always think, and know no effort.
_NATIVE_THINKERS: Final = "magistral"


class MistralAdapter(ChatAdapter):
    """Chat completions at ``<base_url>/chat/completions``."""

    name: str = "mistral"
    option_names = ChatAdapter.option_names | {"safe_prompt"}
    has_strict_tools = False

    def decoder(self, request: ModelRequest) -> Decoder:
        return MistralDecoder(self.signature, request)

    def messages(self, endpoint: Endpoint, request: ModelRequest) -> list[JsonObject]:
        # Merging needs the messages themselves, not their JSON.
        plain = replace(request, written=None)
        wire = map_parts(super().messages(endpoint, plain), _file_as_document)
        return answer_before_user(merge_roles(wire), _INTERRUPTED)

    def assistant_to_wire(self, message: AssistantMessage) -> JsonObject:
        entry = super().assistant_to_wire(message)
        if not entry["content"]:
            # Null content beside calls is refused by some models.
            entry["content"] = ""
        return entry

    def reasoning_to_wire(self, message: AssistantMessage, *, current: bool) -> JsonObject:
        """Write the content as parts, the thinking first."""
        thoughts = [
            _thinking_part(block)
            for block in message.blocks
            if isinstance(block, ReasoningBlock) and block.provider == self.signature and block.text
        ]
        if not thoughts:
            return {}
        text = as_text(self.assistant_to_wire(message)["content"])
        return {"content": [*thoughts, *([{"type": "text", "text": text}] if text else [])]}

    def tool_use_to_wire(self, block: ToolUseBlock) -> JsonObject:
        return {**super().tool_use_to_wire(block), "id": short_id(block.id)}

    def results_to_wire(self, message: ToolMessage, *, vision: bool) -> list[JsonObject]:
        """Write one message for each result, with its images: no user message may follow."""
        wire: list[JsonObject] = []
        for result in message.results:
            content: str | list[JsonObject] = result.text
            images = [part for image in result.images for part in image_parts(image)] if vision else []
            if images:
                content = [{"type": "text", "text": result.text}, *images]
            wire.append(
                {
                    "role": "tool",
                    "tool_call_id": short_id(result.tool_use_id),
                    "name": result.tool_name,
                    "content": content,
                }
            )
        return wire

    def tool_choice_fields(self, choice: ToolChoice) -> JsonObject:
        fields = super().tool_choice_fields(choice)
        if choice.mode == "required":
            fields["tool_choice"] = "any"
        return fields

    def reasoning_fields(self, endpoint: Endpoint, request: ModelRequest) -> JsonObject:
        if request.model.startswith(_NATIVE_THINKERS):
            return {}
        return super().reasoning_fields(endpoint, request)

    def extra_fields(self, endpoint: Endpoint, request: ModelRequest) -> JsonObject:
        safe = self.options(endpoint).get("safe_prompt")
        return {} if safe is None else {"safe_prompt": bool(safe)}


class MistralDecoder(ChatDecoder):
    """Decodes Mistral's answers, with their signed thinking parts and call ids that are the word ``null``."""

    def _take_parts(self, parts: Any, events: list[ModelEvent]) -> None:
        for item in as_list(parts):
            part = as_object(item)
            thinking = part.get("thinking")
            if not thinking:
                super()._take_parts([item], events)
                continue
            pieces = [as_text(as_object(piece).get("text")) for piece in as_list(thinking)]
            self._add_reasoning("".join(pieces), events)
            # Reasoning without provider data is not kept from turn to turn.
            self._reasoning_data["field"] = "content"
            if "signature" in part:
                self._reasoning_data["signature"] = part["signature"]

    def _take_call(self, choice: int, piece: JsonObject, events: list[ModelEvent]) -> None:
        if piece.get("id") == "null":
            piece = {key: value for key, value in piece.items() if key != "id"}
        super()._take_call(choice, piece, events)


def _thinking_part(block: ReasoningBlock) -> JsonObject:
    part: JsonObject = {"type": "thinking", "thinking": [{"type": "text", "text": block.text}]}
    signature = as_object(block.provider_data).get("signature")
    if signature:
        part["signature"] = signature
    return part


def _file_as_document(part: JsonObject) -> JsonObject:
    if part.get("type") != "file":
        return part
    file = as_object(part.get("file"))
    return {
        "type": "document_url",
        "document_url": as_text(file.get("file_data")),
        "document_name": as_text(file.get("filename")),
    }
