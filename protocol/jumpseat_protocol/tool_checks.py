"""A check of the names and schemas of tools.

The check finds mistakes that providers refuse: it knows the types of JSON Schema and where schemas hold further
schemas, and leaves everything else to the provider.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast
from urllib.parse import unquote

from jumpseat_protocol.members import hint

TYPES: Final = ("string", "number", "integer", "boolean", "array", "object", "null")

MAX_NAME: Final = 64
"""The longest name that all providers take, in characters."""

MAX_CLIENT_NAME: Final = 128
"""The longest name that any provider takes, in characters."""

_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_SCHEMAS_BY_NAME: Final = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTS_OF_SCHEMAS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_SCHEMAS: Final = (
    *("items", "additionalProperties", "unevaluatedProperties", "unevaluatedItems", "contains", "propertyNames"),
    *("not", "if", "then", "else"),
)


def name_problem(name: Any, longest: int = MAX_NAME) -> str | None:
    """Return the reason why providers refuse a tool's name, ``None`` if they take it."""
    if not isinstance(name, str) or len(name) > longest or not _NAME.fullmatch(name):
        return f"tool name {name!r}: expected 1 to {longest} letters, digits, '_' and '-'"
    return None


def schema_problem(schema: Any, path: str = "parameters") -> str | None:
    """Return the first reason why providers refuse a tool's parameters, ``None`` if they take them.

    ``path`` names the schema in the reason: ``parameters.properties.city.type: unknown type 'strnig', ...``.
    """
    if not isinstance(schema, Mapping):
        return f"{path}: expected a JSON Schema of type object"
    declared: Any = cast("Mapping[str, Any]", schema).get("type", "object")
    if _is_type(declared) and declared != "object":
        return f"{path}.type: expected an object schema, got type {declared!r}"
    try:
        return next(_problems(schema, path), None) or reference_problem(cast("Mapping[str, Any]", schema), path)
    except RecursionError:
        return f"{path}: the schema is nested too deeply"


def reference_problem(schema: Mapping[str, Any], path: str = "parameters") -> str | None:
    """Return the first reference to a part that the schema does not have, ``None`` if there is none.

    References to anchors and to other documents are not followed, nor are those of schemas with an ``$id`` inside.
    """
    found = list(_references(schema, path))
    if any(keyword == "$id" and where != f"{path}.$id" for where, keyword, _ in found):
        return None
    for where, keyword, target in found:
        if keyword == "$ref" and isinstance(target, str) and target.startswith("#/") and not _has(schema, target):
            return f"{where}: the schema has no {target!r:.100}"
    return None


def _references(node: Any, path: str) -> Iterator[tuple[str, str, Any]]:
    """Yield the place, the keyword and the value of each ``$ref`` and ``$id`` in a schema."""
    if isinstance(node, Mapping):
        for key, value in cast("Mapping[str, Any]", node).items():
            where = f"{path}.{key}"
            if key in ("$ref", "$id"):
                yield where, key, value
            # These hold values instead of schemas.
            if key not in ("const", "default", "enum", "examples"):
                yield from _references(value, where)
    elif isinstance(node, list):
        for number, value in enumerate(cast("list[Any]", node)):
            yield from _references(value, f"{path}.{number}")


def _has(schema: Any, pointer: str) -> bool:
    """Return whether a schema has a part at ``pointer``, a JSON pointer in the form of a fragment."""
    node = schema
    for raw in pointer.removeprefix("#/").split("/"):
        step = unquote(raw).replace("~1", "/").replace("~0", "~")
        if isinstance(node, Mapping) and step in node:
            node = cast("Mapping[str, Any]", node)[step]
        elif isinstance(node, list) and step.isdecimal() and int(step) < len(cast("list[Any]", node)):
            node = cast("list[Any]", node)[int(step)]
        else:
            return False
    return True


def json_problem(schema: Any, path: str = "parameters") -> str | None:
    """Return the reason why JSON cannot represent a schema, ``None`` if it can."""
    try:
        json.dumps(schema, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        return f"{path}: the schema cannot be written as JSON: {error}"
    return None


def _problems(schema: Any, path: str) -> Iterator[str]:
    if isinstance(schema, bool):
        return
    if not isinstance(schema, Mapping):
        yield f"{path}: expected a JSON Schema"
        return
    node = cast("Mapping[str, Any]", schema)
    for keyword, value in node.items():
        where = f"{path}.{keyword}"
        if keyword == "type":
            listed = cast("list[Any]", value) if isinstance(value, list) else [value]
            for unknown in (name for name in listed if not _is_type(name)):
                yield f"{where}: unknown type {unknown!r}, {hint(str(unknown), TYPES)}"
        elif keyword == "required":
            names = cast("list[Any]", value) if isinstance(value, list) else [None]
            if not all(isinstance(name, str) for name in names):
                yield f"{where}: expected an array of strings"
        elif keyword == "enum" and not isinstance(value, list):
            yield f"{where}: expected an array"
        elif keyword in _SCHEMAS_BY_NAME:
            if not isinstance(value, Mapping):
                yield f"{where}: expected an object"
                continue
            for name, inner in cast("Mapping[str, Any]", value).items():
                yield from _problems(inner, f"{where}.{name}")
        elif keyword in _LISTS_OF_SCHEMAS or (keyword == "items" and isinstance(value, list)):
            if not isinstance(value, list):
                yield f"{where}: expected an array"
                continue
            for number, inner in enumerate(cast("list[Any]", value)):
                yield from _problems(inner, f"{where}.{number}")
        elif keyword in _SCHEMAS:
            yield from _problems(value, where)


def _is_type(name: Any) -> bool:
    return isinstance(name, str) and name in TYPES
