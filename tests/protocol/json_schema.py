"""A validator for the part of JSON Schema that the protocol's document uses. Other keywords fail the test."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast

JsonSchema = dict[str, Any]

_TYPES: Final[dict[str, type | tuple[type, ...]]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "null": type(None),
}
# Keywords without a rule for the value, and those that are handled together with another one.
_NO_RULE: Final = {"$defs", "$schema", "default", "description", "format", "properties", "title"}

SCHEMA_FILE: Final = Path(__file__).parents[2] / "protocol" / "schema" / "jumpseat.schema.json"


class Document:
    """A schema with its definitions. With ``strict``, unknown fields are problems, too."""

    def __init__(self, root: JsonSchema, *, strict: bool = False) -> None:
        self.root = root
        self._strict = strict

    def at(self, *path: str) -> JsonSchema:
        """Return the schema of the property at ``path``, from the root."""
        schema = self.root
        for name in path:
            schema = self.resolved(schema)["properties"][name]
        return schema

    def resolved(self, schema: JsonSchema) -> JsonSchema:
        while "$ref" in schema:
            place, _, name = schema["$ref"].rpartition("/")
            assert place == "#/$defs"
            schema = self.root["$defs"][name]
        return schema

    def problems(self, schema: JsonSchema, value: Any, where: str = "") -> list[str]:
        """Return the problems of ``value``; none if it matches the schema."""
        return list(self._problems(schema, value, where))

    def _problems(self, schema: JsonSchema, value: Any, where: str) -> Iterator[str]:
        schema = self.resolved(schema)
        for keyword, rule in schema.items():
            match keyword:
                case "type":
                    if not _is(value, rule):
                        yield f"{where}: {value!r} is not of type {rule}"
                        return
                case "const":
                    if value != rule:
                        yield f"{where}: {value!r} is not {rule!r}"
                case "enum":
                    if value not in rule:
                        yield f"{where}: {value!r} is not one of {rule}"
                case "allOf":
                    for part in rule:
                        yield from self._problems(part, value, where)
                case "anyOf":
                    each = [self.problems(variant, value, where) for variant in rule]
                    if all(each):
                        yield from min(each, key=len)
                case "required":
                    yield from (f"{where}: {name!r} is missing" for name in rule if name not in value)
                case "items":
                    for number, item in enumerate(value):
                        yield from self._problems(rule, item, f"{where}[{number}]")
                case "additionalProperties":
                    named = schema.get("properties", {})
                    for name in value.keys() - named.keys() if isinstance(rule, dict) else ():
                        yield from self._problems(cast("JsonSchema", rule), value[name], f"{where}.{name}")
                case "pattern":
                    if not re.search(rule, value):
                        yield f"{where}: {value!r} does not match {rule!r}"
                case "exclusiveMinimum":
                    if value <= rule:
                        yield f"{where}: {value!r} violates {keyword} {rule}"
                case "minLength" | "maxLength" | "maxItems" | "minimum" | "maximum":
                    size = len(value) if keyword.endswith(("Length", "Items")) else value
                    if size < rule if keyword.startswith("min") else size > rule:
                        yield f"{where}: {value!r} violates {keyword} {rule}"
                case _:
                    assert keyword in _NO_RULE, f"{where}: the keyword {keyword!r} is not supported"
        if "properties" in schema:
            named = schema["properties"]
            for name, item in value.items():
                if name in named:
                    yield from self._problems(named[name], item, f"{where}.{name}")
                elif self._strict and "additionalProperties" not in schema:
                    yield f"{where}: unknown property {name!r}"


def _is(value: Any, kind: str) -> bool:
    """Return whether ``value`` is of a JSON type. Booleans are not numbers."""
    python_type = _TYPES[kind]
    return isinstance(value, python_type) and (python_type is bool or not isinstance(value, bool))
