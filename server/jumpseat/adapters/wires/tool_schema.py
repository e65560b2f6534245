"""Normalize the parameters of a tool to the form that all wires take: an object schema with properties.

Client tools and MCP servers may declare a choice of objects, a reference, or nothing at all. What an object schema
cannot express is loosened, never tightened: the tool itself checks its arguments.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from jumpseat.adapters.wire import as_object
from jumpseat.agent.blocks import AssistantMessage, JsonObject, Message
from jumpseat.agent.model import ToolSchema, ToolSpec

_NOT_AT_THE_TOP: Final = ("anyOf", "oneOf", "allOf", "$ref", "enum", "const", "not")


def object_parameters(schema: JsonObject) -> JsonObject:
    """Return ``schema`` as an object schema with properties; unchanged if it is one, as nearly all are."""
    odd = any(key in schema for key in _NOT_AT_THE_TOP)
    if not odd and schema.get("type") == "object" and isinstance(schema.get("properties"), dict):
        return schema
    if odd:
        from jumpseat.adapters.wires.gemini_schema import inline_schema, one_object

        schema = one_object(inline_schema(schema))
    rest = {key: value for key, value in schema.items() if key not in _NOT_AT_THE_TOP}
    return {**rest, "type": "object", "properties": as_object(schema.get("properties"))}


def called_tools(messages: Iterable[Message]) -> list[ToolSpec]:
    """Return definitions of the tools that a conversation calls, for a request that offers none."""
    names = {
        call.name: None
        for message in messages
        if isinstance(message, AssistantMessage)
        for call in message.tool_uses()
    }
    schema = ToolSchema.of({"type": "object", "properties": {}})
    return [ToolSpec(name, "Not available any more.", schema) for name in names]
