"""A check of the names and schemas of tools.

The check finds mistakes that providers refuse: it knows the types of JSON Schema and where schemas hold further
schemas, and leaves everything else to the provider.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple, cast
from urllib.parse import unquote

from jumpseat_protocol.members import hint

TYPES: Final = ("string", "number", "integer", "boolean", "array", "object", "null")

MAX_NAME: Final = 64
"""The longest name that all providers take, in characters."""

MAX_CLIENT_NAME: Final = 128
"""The longest name that any provider takes, in characters."""

_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_VALUES: Final = frozenset({"const", "default", "enum", "examples"})
"""The keywords that have values instead of schemas."""


class Problem(NamedTuple):
    """A problem of a schema and its place: the path from the schema down, such as ``.items.type``."""

    path: str
    text: str

    def inside(self, name: str) -> Problem:
        """Return the problem as one of the object that has the schema under ``name``."""
        return Problem(f".{name}{self.path}", self.text)


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
        if (found := _problem(schema)) is not None:
            return f"{path}{found.path}: {found.text}"
        return reference_problem(cast("Mapping[str, Any]", schema), path)
    except RecursionError:
        return f"{path}: the schema is nested too deeply"


def reference_problem(schema: Mapping[str, Any], path: str = "parameters") -> str | None:
    """Return the first reference to a part that the schema does not have, ``None`` if there is none.

    References to anchors and to other documents are not followed, nor are those of schemas with an ``$id`` inside.
    """
    if not _has_references(schema):
        return None
    found = list(_references(schema, path))
    if any(keyword == "$id" and where != f"{path}.$id" for where, keyword, _ in found):
        return None
    for where, keyword, target in found:
        if (
            keyword == "$ref"
            and isinstance(target, str)
            and target.startswith("#/")
            and not has_part(schema, target)
        ):
            return f"{where}: the schema has no {target!r:.100}"
    return None


def _has_references(node: Any) -> bool:
    """Return whether there is any ``$ref`` or ``$id`` in a schema; few schemas have one."""
    if isinstance(node, dict | Mapping):
        for key, value in cast("Mapping[str, Any]", node).items():
            if key in ("$ref", "$id"):
                return True
            # The check of a leaf takes longer than to leave it out.
            if not isinstance(value, str) and key not in _VALUES and _has_references(value):
                return True
        return False
    return isinstance(node, list) and any(map(_has_references, cast("list[Any]", node)))


def _references(node: Any, path: str) -> Iterator[tuple[str, str, Any]]:
    """Yield the place, the keyword and the value of each ``$ref`` and ``$id`` in a schema."""
    if isinstance(node, Mapping):
        for key, value in cast("Mapping[str, Any]", node).items():
            where = f"{path}.{key}"
            if key in ("$ref", "$id"):
                yield where, key, value
            if key not in _VALUES:
                yield from _references(value, where)
    elif isinstance(node, list):
        for number, value in enumerate(cast("list[Any]", node)):
            yield from _references(value, f"{path}.{number}")


def has_part(schema: Any, pointer: str) -> bool:
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


def _problem(schema: Any) -> Problem | None:
    """Return the first problem of a schema, possibly of one inside."""
    if isinstance(schema, bool):
        return None
    # Most are dictionaries, and to ask for the protocol takes longer.
    if not isinstance(schema, dict | Mapping):
        return Problem("", "expected a JSON Schema")
    for keyword, value in cast("Mapping[str, Any]", schema).items():
        check = _CHECKS.get(keyword)
        if check is not None and (found := check(value)) is not None:
            return found.inside(keyword)
    return None


def _type_problem(value: Any) -> Problem | None:
    if _is_type(value):
        return None
    for name in cast("list[Any]", value) if isinstance(value, list) else [value]:
        if not _is_type(name):
            return Problem("", f"unknown type {name!r}, {hint(str(name), TYPES)}")
    return None


def _required_problem(value: Any) -> Problem | None:
    names = cast("list[Any]", value) if isinstance(value, list) else [None]
    return None if all(isinstance(name, str) for name in names) else Problem("", "expected an array of strings")


def _enum_problem(value: Any) -> Problem | None:
    return None if isinstance(value, list) else Problem("", "expected an array")


def _named_problem(value: Any) -> Problem | None:
    if not isinstance(value, dict | Mapping):
        return Problem("", "expected an object")
    for name, inner in cast("Mapping[str, Any]", value).items():
        if (found := _problem(inner)) is not None:
            return found.inside(name)
    return None


def _listed_problem(value: Any) -> Problem | None:
    if not isinstance(value, list):
        return Problem("", "expected an array")
    for number, inner in enumerate(cast("list[Any]", value)):
        if (found := _problem(inner)) is not None:
            return found.inside(str(number))
    return None


def _items_problem(value: Any) -> Problem | None:
    return _listed_problem(value) if isinstance(value, list) else _problem(value)


_CHECKS: Final[Mapping[str, Callable[[Any], Problem | None]]] = {
    "type": _type_problem,
    "required": _required_problem,
    "enum": _enum_problem,
    "items": _items_problem,
    **dict.fromkeys(
        ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"), _named_problem
    ),
    **dict.fromkeys(("anyOf", "oneOf", "allOf", "prefixItems"), _listed_problem),
    **dict.fromkeys(
        (
            *("additionalProperties", "unevaluatedProperties", "unevaluatedItems", "contains", "propertyNames"),
            *("not", "if", "then", "else"),
        ),
        _problem,
    ),
}
"""The checks of the keywords that have types or further schemas."""


def _is_type(name: Any) -> bool:
    return isinstance(name, str) and name in TYPES
