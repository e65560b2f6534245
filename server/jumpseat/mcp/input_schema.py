"""Repair of the schemas of tools' arguments.

Servers send schemas of all drafts of JSON Schema, with mistakes, and a provider refuses every request in which one
schema is invalid. An invalid part is therefore removed, and the tool itself checks its arguments.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, cast

from jumpseat.agent.blocks import JsonObject
from jumpseat_protocol.members import hint
from jumpseat_protocol.tool_checks import TYPES, has_part, reference_problem

MAX_DEPTH: Final = 50
"""Levels of a schema that the model gets; deeper ones accept any value."""


def repair_schema(schema: Any) -> tuple[JsonObject, list[str]]:
    """Return a schema in the form that providers accept, and the problems of the parts that were removed.

    The result has the type ``object``; arrays have ``items``, forms of older drafts are those of draft 2020-12, and
    levels below :data:`MAX_DEPTH` accept any value. The argument is not changed.
    """
    repair = _Repair(schema)
    repaired: JsonObject = repair.subschema(schema, ROOT, 0) if isinstance(schema, dict) else {}
    if repaired.get("type") != "object":
        repair.problems.append(f"{ROOT}.type: expected 'object'")
        repaired["type"] = "object"
    if (problem := reference_problem(repaired, ROOT)) is not None:
        # The target was itself invalid.
        repair.problems.append(problem)
        repaired = {"type": "object"}
    return repaired, repair.problems


ROOT: Final = "inputSchema"


class _Repair:
    """One repair. A method for a keyword returns the repaired value, ``None`` if the keyword has to be removed."""

    def __init__(self, root: Any) -> None:
        self.problems: list[str] = []
        self._root = root

    def note(self, path: str, expected: str) -> None:
        self.problems.append(f"{path}: {expected}")

    def subschema(self, value: Any, path: str, depth: int) -> Any:
        if isinstance(value, bool):
            return {} if value else {"not": {}}
        if not isinstance(value, dict):
            return self.note(path, "expected a JSON Schema")
        if depth > MAX_DEPTH:
            return {}
        schema, out = cast("JsonObject", value), JsonObject()
        for name, inner in schema.items():
            keyword = _KEYWORDS.get(name)
            kept = inner if keyword is None else keyword(self, inner, f"{path}.{name}", depth + 1)
            if kept is not None or keyword is None:
                out[name] = kept
        # Up to draft 2019-09, an array of `items` was what is `prefixItems` now.
        if isinstance(out.get("items"), list):
            out["prefixItems"] = out.pop("items")
        # In draft 4, exclusive limits were flags.
        for limit in ("minimum", "maximum"):
            exclusive = f"exclusive{limit.title()}"
            if isinstance(is_exclusive := out.get(exclusive), bool):
                del out[exclusive]
                if is_exclusive and limit in out:
                    out[exclusive] = out.pop(limit)
        if "items" not in out and "array" in (kind if isinstance(kind := out.get("type"), list) else [kind]):
            out["items"] = {}
        return out

    def rest(self, value: Any, path: str, depth: int) -> Any:
        return value if isinstance(value, bool) else self.subschema(value, path, depth)

    def named(self, value: Any, path: str, depth: int) -> Any:
        if not isinstance(value, dict):
            return self.note(path, "expected an object")
        found = {
            name: self.subschema(inner, f"{path}.{name}", depth)
            for name, inner in cast("JsonObject", value).items()
        }
        return {name: inner for name, inner in found.items() if inner is not None}

    def listed(self, value: Any, path: str, depth: int) -> Any:
        if not isinstance(value, list) or not value:
            return self.note(path, "expected an array of schemas")
        found = [
            self.subschema(inner, f"{path}.{number}", depth)
            for number, inner in enumerate(cast("list[Any]", value))
        ]
        return [{} if inner is None else inner for inner in found]

    def items(self, value: Any, path: str, depth: int) -> Any:
        return self.listed(value, path, depth) if isinstance(value, list) else self.subschema(value, path, depth)

    def type(self, value: Any, path: str, depth: int) -> Any:
        names = cast("list[Any]", value) if isinstance(value, list) else [value]
        known = [name for name in dict.fromkeys(filter(_is_text, names)) if name in TYPES]
        if wrong := [name for name in names if name not in TYPES]:
            self.note(path, f"unknown type {wrong[0]!r}, {hint(str(wrong[0]), TYPES)}")
        return (known if isinstance(value, list) else known[0]) if known else None

    def required(self, value: Any, path: str, depth: int) -> Any:
        names = cast("list[Any]", value) if isinstance(value, list) else [None]
        if all(isinstance(name, str) for name in names):
            return list(dict.fromkeys(names))
        return self.note(path, "expected an array of strings")

    def enum(self, value: Any, path: str, depth: int) -> Any:
        if not isinstance(value, list) or not value:
            return self.note(path, "expected an array of values")
        return list({json.dumps(item, sort_keys=True): item for item in cast("list[Any]", value)}.values())

    def reference(self, value: Any, path: str, depth: int) -> Any:
        # No provider follows a reference to another document.
        if value == "#" or (isinstance(value, str) and value.startswith("#/") and has_part(self._root, value)):
            return value
        return self.note(path, f"the schema has no {value!r:.100}")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_VALUES: Final[tuple[tuple[str, Callable[[Any], bool], str], ...]] = (
    (
        "title description format pattern contentEncoding contentMediaType $schema $id $anchor $comment",
        _is_text,
        "expected a string",
    ),
    ("minimum maximum multipleOf", _is_number, "expected a number"),
    ("exclusiveMinimum exclusiveMaximum", lambda value: isinstance(value, int | float), "expected a number"),
    (
        "minLength maxLength minItems maxItems minProperties maxProperties minContains maxContains",
        lambda value: _is_number(value) and value >= 0 and float(value).is_integer(),
        "expected a whole number of at least 0",
    ),
    (
        "uniqueItems readOnly writeOnly deprecated",
        lambda value: isinstance(value, bool),
        "expected a boolean",
    ),
    ("examples", lambda value: isinstance(value, list), "expected an array"),
)
"""Keywords with values of a certain kind."""


_Keyword: TypeAlias = Callable[[_Repair, Any, str, int], Any]


def _value(kind: Callable[[Any], bool], expected: str) -> _Keyword:
    return lambda repair, value, path, depth: value if kind(value) else repair.note(path, expected)


_KEYWORDS: Final[Mapping[str, _Keyword]] = {
    "type": _Repair.type,
    "required": _Repair.required,
    "enum": _Repair.enum,
    "items": _Repair.items,
    "$ref": _Repair.reference,
    **dict.fromkeys(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"), _Repair.named),
    **dict.fromkeys(("anyOf", "oneOf", "allOf", "prefixItems"), _Repair.listed),
    **dict.fromkeys(("not", "if", "then", "else", "contains", "propertyNames"), _Repair.subschema),
    **dict.fromkeys(
        ("additionalProperties", "additionalItems", "unevaluatedProperties", "unevaluatedItems"), _Repair.rest
    ),
    **{name: _value(kind, expected) for names, kind, expected in _VALUES for name in names.split()},
}
