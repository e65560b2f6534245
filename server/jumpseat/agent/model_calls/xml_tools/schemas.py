"""Determine the types of values from a JSON Schema, for the XML protocol.

Any schema is accepted; those that are not understood have the type ``any``. References are resolved within the
schema only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, cast

from jumpseat.agent.blocks import JsonObject

Kind: TypeAlias = Literal["string", "integer", "number", "boolean", "scalar", "object", "array", "any"]
"""``scalar``: one of several scalar types; ``any``: the type is unknown or ambiguous."""

SCALARS: Final = frozenset({"string", "integer", "number", "boolean", "scalar"})

_MAX_REFERENCES: Final = 8


def as_schema(value: Any) -> JsonObject:
    """Return ``value`` if it is an object, or else the empty schema."""
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def resolve(schema: JsonObject, root: JsonObject) -> JsonObject:
    """Resolve references in ``schema``, and alternatives if only one besides null is left."""
    for _ in range(_MAX_REFERENCES):
        reference = schema.get("$ref")
        variants = _variants(schema)
        if isinstance(reference, str):
            schema = {**_referenced(reference, root), **{key: schema[key] for key in schema if key != "$ref"}}
        elif len(variants) == 1:
            rest = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf", "allOf")}
            schema = {**variants[0], **rest}
        else:
            return schema
    return {}


def kind_of(schema: JsonObject, root: JsonObject) -> Kind:
    """Return the type of the values of ``schema``."""
    schema = resolve(schema, root)
    variants = _variants(schema)
    if variants:
        kinds = {kind_of(variant, root) if variant is not schema else "any" for variant in variants}
        return "scalar" if kinds <= SCALARS else "any"
    named: Any = schema.get("type")
    listed = cast("list[Any]", named) if isinstance(named, list) else [named]
    types = {item for item in listed if isinstance(item, str) and item != "null"}
    if not types:
        if "properties" in schema:
            return "object"
        if "items" in schema or "prefixItems" in schema:
            return "array"
        return "scalar" if "enum" in schema or "const" in schema else "any"
    if len(types) == 1:
        (only,) = types
        return cast("Kind", only) if only in (*SCALARS, "object", "array") else "any"
    return "scalar" if types <= SCALARS else "any"


def properties_of(schema: JsonObject, root: JsonObject) -> Mapping[str, Any]:
    """Return the properties declared in ``schema``."""
    return as_schema(resolve(schema, root).get("properties"))


def property_of(schema: JsonObject, root: JsonObject, name: str) -> JsonObject:
    """Return the schema of one property of an object."""
    found = resolve(schema, root)
    return as_schema(as_schema(found.get("properties")).get(name, found.get("additionalProperties")))


def items_of(schema: JsonObject, root: JsonObject) -> JsonObject:
    """Return the schema of the items of an array."""
    return as_schema(resolve(schema, root).get("items"))


def _variants(schema: JsonObject) -> list[JsonObject]:
    for key in ("anyOf", "oneOf", "allOf"):
        listed: Any = schema.get(key)
        if isinstance(listed, list) and listed:
            return [as_schema(item) for item in cast("list[Any]", listed) if as_schema(item).get("type") != "null"]
    return []


def _referenced(reference: str, root: JsonObject) -> JsonObject:
    if not reference.startswith("#"):
        return {}
    found: Any = root
    for part in reference[1:].split("/")[1:]:
        found = as_schema(found).get(part.replace("~1", "/").replace("~0", "~"))
    return as_schema(found)
