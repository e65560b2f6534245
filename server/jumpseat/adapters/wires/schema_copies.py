"""Copies of JSON Schemas for the answers of models, in the forms that wires enforce."""

from __future__ import annotations

from typing import Any, Final, cast

from jumpseat.adapters.wire import as_object
from jumpseat.agent.blocks import JsonObject

_LIMITS: Final = {
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"),
    *("maxItems", "uniqueItems", "minProperties", "maxProperties"),
}
"""JSON Schema keywords that Anthropic cannot enforce; answers are validated against them afterwards."""

_NAMED: Final = ("properties", "$defs", "definitions")
_NESTED: Final = ("items", "anyOf", "oneOf", "allOf")


def strict_schema(schema: Any) -> Any:
    """Copy a JSON Schema so that every object requires all its properties and allows no others."""
    return _copy(schema, strict=True)


def output_schema(schema: Any) -> Any:
    """Copy a JSON Schema in the subset that Anthropic's Messages API can enforce.

    The wire refuses limits on numbers and lengths, and objects without ``additionalProperties: false``.
    """
    return _copy(schema, strict=False)


def _copy(schema: Any, *, strict: bool) -> Any:
    if isinstance(schema, list):
        return [_copy(item, strict=strict) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    copy: JsonObject = {}
    for key, value in cast("JsonObject", schema).items():
        if key in _NAMED and isinstance(value, dict):
            copy[key] = {name: _copy(item, strict=strict) for name, item in cast("JsonObject", value).items()}
        elif key in _NESTED or (key == "additionalProperties" and not strict):
            copy[key] = _copy(value, strict=strict)
        elif strict or (key not in _LIMITS and not (key == "minItems" and value not in (0, 1))):
            copy[key] = value
    if "properties" in copy or copy.get("type") == "object":
        if strict:
            copy |= {"required": list(as_object(copy.get("properties"))), "additionalProperties": False}
        copy.setdefault("additionalProperties", False)
    return copy
