"""Whether the arguments of a call fit the JSON Schema of its tool.

The judge (``agent/json_schema.py``) takes a tenth of a second to load. Most calls never need it: what fits a schema
of the usual words is told here, and only what may not is judged. Schemas come from anywhere: one that is wrong,
that refers to what it does not hold, or that asks for too much work says nothing against a call.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast

from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.json_schema import problems_of

log = logging.getLogger(__name__)

MAX_VALUES: Final = 2000
"""How many values may be in arguments that are judged."""
MAX_STEPS: Final = 50_000
"""How many schemas may be looked at for one call: those that refer to themselves can ask for any number."""

_SILENT: Final = frozenset(
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


def misfits(arguments: JsonObject, schema: Mapping[str, Any]) -> list[str]:
    """What of ``arguments`` does not fit, each with its place; empty where nothing, or nothing can be told."""
    try:
        if _Fit(schema).certain(arguments, schema) or _values_in(arguments) > MAX_VALUES:
            return []
        found = problems_of(arguments, schema)
        return [f"{'.'.join(map(str, one.path)) or 'arguments'}: {one.text}" for one in found]
    except Exception as error:
        # Whatever is wrong here is wrong with the schema, and the tool itself may know better.
        log.debug("a schema cannot be judged by: %s", error)
        return []


class _Fit:
    """Tells what fits for certain. The opposite is not certain at all."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._steps = 0

    def certain(self, value: Any, schema: Any) -> bool:
        """Whether ``value`` fits ``schema`` for certain."""
        self._steps += 1
        if not isinstance(schema, Mapping) or self._steps > MAX_STEPS:
            return schema is True
        table = cast("Mapping[str, Any]", schema)
        return all(self._word(value, word, wanted, table) for word, wanted in table.items())

    def _word(self, value: Any, word: str, wanted: Any, schema: Mapping[str, Any]) -> bool:
        match word:
            case "type":
                names = cast("_Values", wanted) if isinstance(wanted, list) else [wanted]
                return any(_is_of(value, name) for name in names)
            case "enum" | "const":
                # To Python, true is 1.
                listed = cast("_Values", wanted) if word == "enum" and isinstance(wanted, list) else [wanted]
                return any(type(one) is type(value) and one == value for one in listed)
            case "properties":
                return isinstance(value, dict) and all(
                    self.certain(inner, _table(wanted).get(name, True))
                    for name, inner in cast("JsonObject", value).items()
                )
            case "additionalProperties":
                known = _table(schema.get("properties"))
                return isinstance(value, dict) and all(
                    name in known or self.certain(inner, wanted)
                    for name, inner in cast("JsonObject", value).items()
                )
            case "required":
                return isinstance(value, dict) and all(name in value for name in cast("_Values", wanted))
            case "items":
                return isinstance(value, list) and all(self.certain(one, wanted) for one in cast("_Values", value))
            case "anyOf":
                return isinstance(wanted, list) and any(self.certain(value, one) for one in cast("_Values", wanted))
            case "$ref":
                found: Any = self._root
                for part in str(wanted).split("/"):
                    found = found if part == "#" else _table(found).get(part)
                return str(wanted).startswith("#/") and self.certain(value, found)
            case "minimum" | "maximum":
                return _is_of(value, "number") and (value >= wanted if word == "minimum" else value <= wanted)
            case "minLength" | "maxLength":
                return isinstance(value, str) and _within(len(value), word, wanted)
            case "minItems" | "maxItems":
                return isinstance(value, list) and _within(len(cast("_Values", value)), word, wanted)
            case _:
                return word in _SILENT


def _within(length: int, word: str, limit: Any) -> bool:
    return isinstance(limit, int) and (length >= limit if word.startswith("min") else length <= limit)


def _table(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _is_of(value: Any, name: Any) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, _TYPES.get(name, ())) if isinstance(name, str) else False


def _values_in(value: Any) -> int:
    """How many values ``value`` holds, itself included; it is counted no further than needed."""
    count = 0
    waiting: _Values = [value]
    while waiting and count <= MAX_VALUES:
        one = waiting.pop()
        count += 1
        if isinstance(one, dict):
            waiting += cast("JsonObject", one).values()
        elif isinstance(one, list):
            waiting += cast("_Values", one)
    return count
