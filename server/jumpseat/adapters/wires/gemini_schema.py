"""Conversion of JSON Schema for Gemini's wires. Pure functions; the input is never changed.

:func:`inlined` replaces references by their targets, which both wires need; :func:`openapi_subset` then converts
the result to the Schema of ``generateContent``, a subset of OpenAPI 3.0. What the subset cannot express is
loosened, never tightened, and put into the description where it helps the model: the tool itself checks its
arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast
from urllib.parse import unquote

from jumpseat.adapters.wire import as_list, as_object, as_text, dump_json
from jumpseat.agent.blocks import JsonObject

MAX_NODES: Final = 5000
"""The most nodes of a schema after inlining: a few lines of references can expand beyond memory."""

MAX_DEPTH: Final = 64
"""The deepest level of a schema that is sent; anything below is unrestricted."""

_REFUSED: Final = frozenset(
    {"$schema", "$id", "$comment", "$anchor", "$defs", "definitions", "additionalProperties", "strict"}
)
"""Keywords that neither wire takes, or that are useless without references."""

_NAMED: Final = ("properties", "patternProperties", "dependentSchemas")
_LISTED: Final = ("anyOf", "oneOf", "allOf", "prefixItems")

_KEPT: Final = ("title", "description", "nullable", "default", "example")
_OF_NUMBERS: Final = ("minimum", "maximum")
_OF_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "string": ("minLength", "maxLength", "pattern"),
    "number": _OF_NUMBERS,
    "integer": _OF_NUMBERS,
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties", "propertyOrdering"),
}
"""Keywords by type; the wire refuses a keyword on another type."""

_FORMATS: Final[Mapping[str, frozenset[str]]] = {
    "string": frozenset({"date-time"}),
    "number": frozenset({"float", "double"}),
    "integer": frozenset({"int32", "int64"}),
}


def inline_schema(schema: JsonObject) -> JsonObject:
    """Copy ``schema`` without references, and without keywords that neither wire takes.

    A recursive reference, or one without a target, becomes an unrestricted object.
    """
    return as_object(_Inliner(schema).of(schema, ()))


def openapi_subset(schema: JsonObject) -> JsonObject:
    """Convert a result of :func:`inlined` to a Schema of ``generateContent``."""
    return _node(schema)


def openapi_parameters(schema: JsonObject) -> JsonObject | None:
    """Convert the parameters of a function to an object Schema; ``None`` if it takes none."""
    node = inline_schema(schema)
    if any(key in node for key in _LISTED[:3]):
        node = one_object(node)
    node = _node({**node, "type": "object"})
    return node if node.get("properties") else None


class _Inliner:
    """Inlines the references of one schema."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._nodes = 0
        self._depth = 0

    def of(self, schema: Any, within: tuple[str, ...]) -> Any:
        """Copy ``schema`` without references; ``within`` are the references that led to it."""
        if self._depth == MAX_DEPTH:
            return {}
        self._depth += 1
        try:
            return self._of(schema, within)
        finally:
            self._depth -= 1

    def _of(self, schema: Any, within: tuple[str, ...]) -> Any:
        if not isinstance(schema, dict):
            # `true` and `false` are schemas too: they allow anything and nothing.
            return {} if isinstance(schema, bool) else schema
        node = cast("JsonObject", schema)
        self._nodes += 1
        reference = node.get("$ref")
        if isinstance(reference, str):
            beside = {key: value for key, value in node.items() if key != "$ref"}
            target = self._target(reference)
            if target is None or reference in within or self._nodes > MAX_NODES:
                return self.of({"type": "object", **beside}, within)
            return self.of({**target, **beside}, (*within, reference))
        copy: JsonObject = {}
        for key, value in node.items():
            if key in _REFUSED:
                continue
            if key in _NAMED and isinstance(value, dict):
                named = cast("JsonObject", value)
                copy[key] = {name: self.of(item, within) for name, item in named.items()}
            elif key in _LISTED or (key == "items" and isinstance(value, list)):
                copy[key] = [self.of(item, within) for item in as_list(value)]
            elif key == "items":
                copy[key] = self.of(value, within)
            else:
                copy[key] = value
        return copy

    def _target(self, reference: str) -> JsonObject | None:
        """Return the target of a reference into this schema; ``None`` for any other reference."""
        if not reference.startswith("#"):
            return None
        found: Any = self._root
        for step in reference[1:].split("/")[1:]:
            name = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and name.isdecimal() and int(name) < len(cast("list[Any]", found)):
                found = cast("list[Any]", found)[int(name)]
            else:
                found = as_object(found).get(name)
        return cast("JsonObject", found) if isinstance(found, dict) else None


def _node(schema: Any) -> JsonObject:
    """Convert one schema to the subset."""
    node = _merge_all_of(as_object(schema))
    options = [as_object(option) for key in ("anyOf", "oneOf") for option in as_list(node.get(key))]
    kinds = node.get("type")
    if isinstance(kinds, list):
        types = [kind for kind in cast("list[Any]", kinds) if kind != "null"]
        nullable = len(types) < len(cast("list[Any]", kinds))
        node = {**node, "type": types[0] if types else "string"}
        if nullable:
            node["nullable"] = True
        if len(types) > 1:
            rest = {key: value for key, value in node.items() if key not in ("type", "description", "nullable")}
            options = options or [{**rest, "type": kind} for kind in types]
    if options:
        return _choice(node, options)
    return _plain(node)


def _choice(node: JsonObject, options: list[JsonObject]) -> JsonObject:
    """Convert a choice. No keyword may stand beside ``anyOf``, so all others move into each option."""
    real = [option for option in options if option.get("type") != "null"]
    about: JsonObject = {}
    if "description" in node:
        about["description"] = node["description"]
    if node.get("nullable") or len(real) < len(options):
        about["nullable"] = True
    shared: JsonObject = {}
    if "properties" in node:
        shared = {key: node[key] for key in ("type", "properties", "required") if key in node}
    made = [_node({**about, **_combine(shared, option)}) for option in real]
    # Options that differed only in what the subset cannot express are now equal.
    distinct = [option for place, option in enumerate(made) if option not in made[:place]]
    if len(distinct) == 1:
        return distinct[0]
    return {"anyOf": distinct} if distinct else {"type": "string", **about, "nullable": True}


def _plain(node: JsonObject) -> JsonObject:
    """Convert a schema of one type."""
    kind = as_text(node.get("type")).lower() or _type_of(node)
    if kind == "null":
        return {"type": "string", "nullable": True}
    copy: JsonObject = {"type": kind}
    copy |= {key: node[key] for key in (*_KEPT, *_OF_TYPES.get(kind, ())) if key in node}
    if node.get("format") in _FORMATS.get(kind, ()):
        copy["format"] = node["format"]
    _values(node, kind, copy)
    if kind == "object":
        properties = as_object(node.get("properties"))
        if properties:
            copy["properties"] = {name: _node(item) for name, item in properties.items()}
            # The wire refuses required names without a property.
            required = [name for name in as_list(node.get("required")) if name in properties]
            if required:
                copy["required"] = required
    elif kind == "array":
        items = node.get("items")
        if isinstance(items, list) or "prefixItems" in node:
            # The subset has no tuples: each item may be what any item may be.
            copy["items"] = _node({"anyOf": as_list(items) or as_list(node.get("prefixItems"))})
        else:
            copy["items"] = _node(items if isinstance(items, dict) else {"type": "string"})
    return copy


def _values(node: JsonObject, kind: str, copy: JsonObject) -> None:
    """Add the allowed values to ``copy``; an enumeration of the subset has non-empty strings only."""
    values = [node["const"]] if "const" in node else as_list(node.get("enum"))
    if None in values:
        copy["nullable"] = True
        values = [value for value in values if value is not None]
    if not values:
        return
    if kind == "string" and all(isinstance(value, str) and value for value in values):
        copy["enum"] = values
    else:
        sentence = f"One of: {', '.join(dump_json(value) for value in values)}."
        copy["description"] = f"{as_text(node.get('description'))} {sentence}".strip()


def _type_of(node: JsonObject) -> str:
    """Infer the type of a schema without one; the subset requires it."""
    if "properties" in node or "required" in node:
        return "object"
    if "items" in node or "prefixItems" in node:
        return "array"
    values = [node["const"]] if "const" in node else as_list(node.get("enum"))
    if values and all(isinstance(value, bool) for value in values):
        return "boolean"
    if values and all(isinstance(value, (int, float)) for value in values):
        return "integer" if all(isinstance(value, int) for value in values) else "number"
    if "minimum" in node or "maximum" in node:
        return "number"
    return "string"


def _merge_all_of(node: JsonObject) -> JsonObject:
    """Merge the ``allOf`` of ``node`` into it."""
    parts = as_list(node.get("allOf"))
    if not parts:
        return node
    merged = {key: value for key, value in node.items() if key != "allOf"}
    for part in parts:
        merged = _combine(merged, _merge_all_of(as_object(part)))
    return merged


def _combine(first: JsonObject, second: JsonObject) -> JsonObject:
    """Combine two schemas as far as the subset can express; ``second`` wins."""
    if not first:
        return second
    both = {**first, **second}
    if "properties" in first and "properties" in second:
        both["properties"] = {**as_object(first["properties"]), **as_object(second["properties"])}
    if "required" in first and "required" in second:
        both["required"] = list(dict.fromkeys([*as_list(first["required"]), *as_list(second["required"])]))
    return both


def one_object(node: JsonObject) -> JsonObject:
    """Convert a choice of objects to one object that accepts each of them."""
    merged = _merge_all_of(node)
    options = [
        _merge_all_of(as_object(option)) for key in ("anyOf", "oneOf") for option in as_list(merged.get(key))
    ]
    rest = {key: value for key, value in merged.items() if key not in ("anyOf", "oneOf")}
    if not options:
        return rest
    properties: JsonObject = {}
    for option in reversed(options):
        properties |= as_object(option.get("properties"))
    always = [
        name
        for name in as_list(options[0].get("required"))
        if all(name in as_list(option.get("required")) for option in options)
    ]
    return _combine({"properties": properties, "required": always}, rest)
