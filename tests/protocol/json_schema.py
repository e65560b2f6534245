"""As much of JSON Schema as the protocol's own document uses; any other keyword fails the test that meets it."""

from __future__ import annotations

import re
from collections.abc import Iterator
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
# Names and texts, which say nothing about the value, and what is looked at together with another keyword.
_NO_RULE: Final = {"$defs", "$schema", "default", "description", "format", "properties", "title"}


class Document:
    """A schema with its definitions. ``strict`` complains about fields that it does not name, too."""

    def __init__(self, root: JsonSchema, *, strict: bool = False) -> None:
        self.root = root
        self._strict = strict

    def at(self, *path: str) -> JsonSchema:
        """The schema of a property of a property, and so on, of the root."""
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
        """What is wrong with ``value``; nothing where it fits."""
        return list(self._problems(schema, value, where))

    def _problems(self, schema: JsonSchema, value: Any, where: str) -> Iterator[str]:
        schema = self.resolved(schema)
        for keyword, rule in schema.items():
            match keyword:
                case "type":
                    if not _is(value, rule):
                        yield f"{where}: {value!r} is no {rule}"
                        return
                case "const":
                    if value != rule:
                        yield f"{where}: {value!r} is not {rule!r}"
                case "enum":
                    if value not in rule:
                        yield f"{where}: {value!r} is none of {rule}"
                case "anyOf":
                    each = [self.problems(one, value, where) for one in rule]
                    if all(each):
                        yield from min(each, key=len)
                case "required":
                    yield from (f"{where}: {name!r} is missing" for name in rule if name not in value)
                case "items":
                    for number, one in enumerate(value):
                        yield from self._problems(rule, one, f"{where}[{number}]")
                case "additionalProperties":
                    named = schema.get("properties", {})
                    for name in value.keys() - named.keys() if isinstance(rule, dict) else ():
                        yield from self._problems(cast("JsonSchema", rule), value[name], f"{where}.{name}")
                case "pattern":
                    if not re.search(rule, value):
                        yield f"{where}: {value!r} does not fit {rule!r}"
                case "minLength" | "maxLength" | "minimum" | "maximum":
                    size = len(value) if keyword.endswith("Length") else value
                    if size < rule if keyword.startswith("min") else size > rule:
                        yield f"{where}: {value!r} breaks {keyword} {rule}"
                case _:
                    assert keyword in _NO_RULE, f"{where}: the keyword {keyword!r} is not checked here"
        if "properties" in schema:
            named = schema["properties"]
            for name, one in value.items():
                if name in named:
                    yield from self._problems(named[name], one, f"{where}.{name}")
                elif self._strict and "additionalProperties" not in schema:
                    yield f"{where}: {name!r} is not named in the schema"


def _is(value: Any, kind: str) -> bool:
    """Whether ``value`` is of a type of JSON; true and false are no numbers there."""
    wanted = _TYPES[kind]
    return isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))
