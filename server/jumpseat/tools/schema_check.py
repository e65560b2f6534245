"""Check the arguments of a call against the JSON Schema of its tool.

The validator (``agent/json_schema.py``) takes some 30 ms to import, and most calls never need it: arguments that
certainly fit a schema made of the usual keywords are accepted here, and only the others are validated. Schemas come
from anywhere: one that is invalid, cannot be resolved or asks for too much work never stops a call.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast

from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.json_schema import problems_of

log = logging.getLogger(__name__)

MAX_VALUES: Final = 2000
"""Arguments that hold more values than these are not validated."""
MAX_STEPS: Final = 50_000
"""The largest number of subschemas looked at for one call: schemas that refer to themselves have no end."""

_ANNOTATIONS: Final = frozenset(
    {"$schema", "$id", "$comment", "$defs", "definitions", "title", "description", "default", "examples", "format"}
    | {"deprecated", "readOnly", "writeOnly"}
)
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "object": (dict,),
    "array": (list,),
}
_Values: TypeAlias = "list[Any]"


def argument_problems(arguments: JsonObject, schema: Mapping[str, Any]) -> list[str]:
    """Validate ``arguments`` against ``schema`` and return the problems, each as ``"path.to.value: message"``.

    Return an empty list as well where the schema is unusable or the arguments are too large to be validated.
    """
    try:
        if _QuickCheck(schema).fits(arguments, schema) or _count_values(arguments) > MAX_VALUES:
            return []
        problems = problems_of(arguments, schema)
        return [f"{'.'.join(map(str, problem.path)) or 'arguments'}: {problem.text}" for problem in problems]
    except Exception as error:
        # The schema is at fault, not the call, and the tool itself may know better.
        log.debug("arguments were not validated: %s", error)
        return []


def missing_defaults(arguments: JsonObject, schema: Mapping[str, Any]) -> JsonObject:
    """Return the defaults of required properties that ``arguments`` lack.

    Generators of schemas, such as zod's, declare properties with a default as required: they describe the value
    after parsing. A model rightly leaves such properties out.
    """
    required = schema.get("required")
    properties = _table(schema.get("properties"))
    names = cast("_Values", required) if isinstance(required, list) else []
    return {
        name: table["default"]
        for name in names
        if isinstance(name, str) and name not in arguments and "default" in (table := _table(properties.get(name)))
    }


class _QuickCheck:
    """A validator for the usual keywords that accepts only what certainly fits; it may reject what fits."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._steps = 0

    def fits(self, value: Any, schema: Any) -> bool:
        """Return whether ``value`` certainly fits ``schema``."""
        self._steps += 1
        if not isinstance(schema, Mapping) or self._steps > MAX_STEPS:
            return schema is True
        table = cast("Mapping[str, Any]", schema)
        return all(self._keyword(value, keyword, wanted, table) for keyword, wanted in table.items())

    def _keyword(self, value: Any, keyword: str, wanted: Any, schema: Mapping[str, Any]) -> bool:
        match keyword:
            case "type":
                names = cast("_Values", wanted) if isinstance(wanted, list) else [wanted]
                return any(_has_type(value, name) for name in names)
            case "enum" | "const":
                # True equals 1 in Python.
                listed = cast("_Values", wanted) if keyword == "enum" and isinstance(wanted, list) else [wanted]
                return any(type(option) is type(value) and option == value for option in listed)
            case "properties":
                return isinstance(value, dict) and all(
                    self.fits(inner, _table(wanted).get(name, True))
                    for name, inner in cast("JsonObject", value).items()
                )
            case "additionalProperties":
                known = _table(schema.get("properties"))
                return isinstance(value, dict) and all(
                    name in known or self.fits(inner, wanted) for name, inner in cast("JsonObject", value).items()
                )
            case "required":
                return isinstance(value, dict) and all(name in value for name in cast("_Values", wanted))
            case "items":
                return isinstance(value, list) and all(self.fits(item, wanted) for item in cast("_Values", value))
            case "anyOf":
                return isinstance(wanted, list) and any(
                    self.fits(value, option) for option in cast("_Values", wanted)
                )
            case "$ref":
                found: Any = self._root
                for part in str(wanted).split("/"):
                    found = found if part == "#" else _table(found).get(part)
                return str(wanted).startswith("#/") and self.fits(value, found)
            case "minimum" | "maximum":
                return _has_type(value, "number") and (value >= wanted if keyword == "minimum" else value <= wanted)
            case "minLength" | "maxLength":
                return isinstance(value, str) and _is_within(len(value), keyword, wanted)
            case "minItems" | "maxItems":
                return isinstance(value, list) and _is_within(len(cast("_Values", value)), keyword, wanted)
            case _:
                return keyword in _ANNOTATIONS


def _is_within(length: int, keyword: str, limit: Any) -> bool:
    return isinstance(limit, int) and (length >= limit if keyword.startswith("min") else length <= limit)


def _table(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _has_type(value: Any, name: Any) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, _TYPES.get(name, ())) if isinstance(name, str) else False


def _count_values(value: Any) -> int:
    """Count ``value`` and all values in it; stop counting above :data:`MAX_VALUES`."""
    count = 0
    remaining: _Values = [value]
    while remaining and count <= MAX_VALUES:
        node = remaining.pop()
        count += 1
        if isinstance(node, dict):
            remaining += cast("JsonObject", node).values()
        elif isinstance(node, list):
            remaining += cast("_Values", node)
    return count
