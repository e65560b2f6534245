"""JSON Schemas in the subset that Anthropic's Messages API enforces for answers."""

from __future__ import annotations

from typing import Any, Final, cast

from jumpseat.agent.blocks import JsonObject

_LIMITS: Final = frozenset(
    {
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "maxItems",
        "uniqueItems",
        "minProperties",
        "maxProperties",
    }
)
"""JSON Schema keywords that the wire cannot enforce; answers are validated against them afterwards."""


def output_schema(schema: Any) -> Any:
    """Copy a JSON Schema in the subset that the wire can enforce.

    The wire refuses limits on numbers and lengths, and objects without ``additionalProperties: false``.
    """
    if isinstance(schema, list):
        return [output_schema(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    copy: JsonObject = {}
    for key, value in cast("JsonObject", schema).items():
        if key in ("properties", "$defs", "definitions") and isinstance(value, dict):
            copy[key] = {name: output_schema(item) for name, item in cast("JsonObject", value).items()}
        elif key in ("items", "anyOf", "oneOf", "allOf", "additionalProperties"):
            copy[key] = output_schema(value)
        elif key not in _LIMITS and not (key == "minItems" and value not in (0, 1)):
            copy[key] = value
    if "properties" in copy or copy.get("type") == "object":
        copy.setdefault("additionalProperties", False)
    return copy
