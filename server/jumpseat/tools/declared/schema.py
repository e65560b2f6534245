"""Convert the declared parameters of a tool, in any of their forms, to a JSON Schema.

::

    parameters = {type = "object", properties = {path = {type = "string"}}, required = ["path"]}
    parameters = {path = {type = "string"}, depth = {type = "integer", optional = true}}   # the short form
    schema = {type = "function", function = {name = ..., description = ..., parameters = ...}}
    schema = {name = ..., parameters = {inputs = {lang = "python", code = "print(1)"}}}    # an example, as in 2024
    schema = [{tool = {_attr = {name = ...}, action = {_attr = {type = "update"}, buffer = "1"}}}]   # several

In the short form a parameter is required unless it is ``optional`` or has a ``default``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, cast

from msgspec import Struct

from jumpseat.agent import json_schema
from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.json_schema import NotASchemaError, UnusableSchemaError
from jumpseat.declared.paths import follow
from jumpseat.declared.values import problem_in_json
from jumpseat.errors import ConfigError
from jumpseat.parsing.validation import kind_of
from jumpseat_protocol.members import hint, misspelt
from jumpseat_protocol.tool_checks import reference_problem

_KEYWORDS: Final = frozenset({"type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"})
_COMMON: Final = (
    *("type", "description", "enum", "default", "properties", "required", "items", "additionalProperties"),
    *("minimum", "maximum", "pattern", "format", "examples", "optional"),
)
"""Keywords that authors write, and may misspell."""
_RARE: Final = frozenset({"item", "example", "options", "formats", "defaults", "patterns"})
"""Keywords of other dialects that resemble those of JSON Schema."""
_FUNCTION: Final[Mapping[str, tuple[type, str] | None]] = {
    "name": (str, "a string"),
    "description": (str, "a string"),
    "parameters": None,
    "strict": (bool, "a boolean"),
}
"""The keys of a function in the form of OpenAI, with the types that are not checked elsewhere."""
_ATTRIBUTES: Final = "_attr"
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,300}")
_NUMBER: Final = re.compile(r"[-+]?[0-9]{1,300}(?:\.[0-9]{1,300})?(?:[eE][-+]?[0-9]{1,2})?")


class Signature(Struct, frozen=True):
    """Name, description and parameters of a tool. ``example``: the schema was declared by example, as in 2024.

    ``strict`` asks the provider to follow the schema exactly.
    """

    parameters: JsonObject
    name: str | None = None
    description: str | None = None
    example: bool = False
    strict: bool | None = None


def read_signature(where: str, parameters: Any, schema: Any) -> Signature:
    """Read the signature from ``parameters`` or ``schema``; without either the tool takes no arguments.

    Raises:
        ConfigError: the form is unknown, or the result is not a valid JSON Schema.
    """
    if parameters is not None and schema is not None:
        raise ConfigError(f"{where}: expected parameters or schema, not both")
    signature = _of_schema(where, schema) if schema is not None else _of_parameters(where, parameters)
    _check(where, signature.parameters)
    return signature


def problems_of(arguments: JsonObject, parameters: JsonObject) -> list[str]:
    """Validate the arguments of a call; return the problems, each with its place.

    Raises:
        ConfigError: the schema has an unresolvable or endless reference.
    """
    try:
        problems = json_schema.problems_of(arguments, parameters)
    except UnusableSchemaError as error:
        raise ConfigError(f"its parameters are not a usable schema: {error}") from None
    return [f"{problem.pointer}: {problem.text}" if problem.path else problem.text for problem in problems]


def lenient(arguments: JsonObject, parameters: JsonObject) -> JsonObject:
    """Return the arguments with strings converted to numbers and booleans where the schema requires those.

    Arguments that are valid, or that no such conversion makes valid, are returned unchanged.

    Raises:
        ConfigError: the schema has an unresolvable or endless reference.
    """
    if not problems_of(arguments, parameters):
        return arguments
    changed: JsonObject = _lenient(arguments, parameters)
    return arguments if problems_of(changed, parameters) else changed


def _lenient(value: Any, schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return value
    node = cast("Mapping[str, Any]", schema)
    if isinstance(value, dict):
        properties: Any = node.get("properties")
        known = cast("Mapping[str, Any]", properties if isinstance(properties, Mapping) else {})
        return {name: _lenient(item, known.get(name)) for name, item in cast("JsonObject", value).items()}
    if isinstance(value, list):
        return [_lenient(item, node.get("items")) for item in cast("list[Any]", value)]
    kinds: Any = node.get("type")
    wanted = set(cast("list[Any]", kinds)) if isinstance(kinds, list) else {kinds}
    if isinstance(value, str) and "string" not in wanted:
        return _scalar(value.strip(), wanted)
    return value


def _scalar(text: str, wanted: set[Any]) -> Any:
    if "boolean" in wanted and text in ("true", "false"):
        return text == "true"
    if "integer" in wanted and _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if "number" in wanted and _NUMBER.fullmatch(text) else text


def _of_schema(where: str, schema: Any) -> Signature:
    if isinstance(schema, list):
        return _of_examples(where, cast("list[Any]", schema))
    if not isinstance(schema, Mapping):
        raise ConfigError(f"{where}.schema: expected a table")
    table = cast("Mapping[str, Any]", schema)
    if isinstance(table.get("tool"), Mapping):
        return _of_examples(where, [table])
    inner: Any = table.get("function", table)
    if not isinstance(inner, Mapping):
        raise ConfigError(f"{where}.schema.function: expected a table")
    function = cast("Mapping[str, Any]", inner)
    place = f"{where}.schema.function" if inner is not table else f"{where}.schema"
    if "parameters" not in function and ("properties" in function or function.get("type") == "object"):
        return Signature(_object(function))
    for name in function:
        if (meant := misspelt(name, _FUNCTION)) is not None:
            raise ConfigError(f"{place}.{name}: unknown, did you mean {meant!r}?")
    for name, wanted in _FUNCTION.items():
        if wanted is not None and (value := function.get(name)) is not None and not isinstance(value, wanted[0]):
            raise ConfigError(f"{place}.{name}: expected {wanted[1]}, got {kind_of(value)}")
    read = _of_parameters(f"{where}.schema", function.get("parameters"))
    return Signature(
        read.parameters,
        _text(function.get("name")),
        _text(function.get("description")),
        read.example,
        function.get("strict"),
    )


def _of_parameters(where: str, raw: Any) -> Signature:
    if raw is None:
        return Signature(_object({}))
    if not isinstance(raw, Mapping):
        raise ConfigError(f"{where}.parameters: expected a table")
    table = cast("Mapping[str, Any]", raw)
    if table.get("type") == "object" or _all_schemas(table.get("properties")):
        return Signature(_object(table))
    if all(_looks_like_a_schema(value) for value in table.values()):
        return Signature(_short_form(where, table))
    for name, value in table.items():
        if name != "type" and isinstance(value, str) and value in _TYPES:
            raise ConfigError(f"{where}.parameters.{name}: expected a table such as {{type = {value!r}}}")
    if table.get("type") in _TYPES:
        raise ConfigError(f"{where}.parameters.type: expected 'object', got {table['type']!r}")
    return Signature(_of_example([table]), example=True)


def _all_schemas(properties: Any) -> bool:
    if not isinstance(properties, Mapping):
        return False
    return all(
        isinstance(definition, Mapping | bool) for definition in cast("Mapping[str, Any]", properties).values()
    )


def _object(schema: Mapping[str, Any]) -> JsonObject:
    return {"type": "object", "properties": {}, **schema}


def _looks_like_a_schema(value: Any) -> bool:
    """Return whether a value is a schema, possibly with a misspelled keyword, and not an example."""
    keys = cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else ()
    return any(key in _KEYWORDS or misspelt(key, _KEYWORDS) is not None for key in keys)


def _short_form(where: str, table: Mapping[str, Mapping[str, Any]]) -> JsonObject:
    properties: JsonObject = {}
    for name, item in table.items():
        if not isinstance(item.get("optional", False), bool):
            raise ConfigError(
                f"{where}: parameters.{name}.optional: expected a boolean, got {kind_of(item['optional'])}"
            )
        properties[name] = {key: value for key, value in item.items() if key != "optional"}
    required = [name for name, value in table.items() if not value.get("optional") and "default" not in value]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _of_examples(where: str, examples: list[Any]) -> Signature:
    tools: list[Mapping[str, Any]] = []
    name: str | None = None
    for example in examples:
        tool: Any = cast("Mapping[str, Any]", example).get("tool") if isinstance(example, Mapping) else None
        if not isinstance(tool, Mapping):
            raise ConfigError(f"{where}.schema: expected a list of tables with 'tool' in them")
        table = cast("Mapping[str, Any]", tool)
        attributes: Any = table.get(_ATTRIBUTES)
        if isinstance(attributes, Mapping):
            name = name or _text(cast("Mapping[str, Any]", attributes).get("name"))
        tools.append({key: value for key, value in table.items() if key != _ATTRIBUTES})
    return Signature(_of_example(tools), name, example=True)


def _of_example(examples: list[Any]) -> JsonObject:
    """Return a schema that all ``examples`` of one place satisfy, with strings as its examples."""
    if examples and all(isinstance(example, Mapping) for example in examples):
        tables = cast("list[Mapping[str, Any]]", examples)
        names = dict.fromkeys(name for table in tables for name in table)
        return {
            "type": "object",
            "properties": {name: _of_example([table[name] for table in tables if name in table]) for name in names},
            "required": [name for name in names if all(name in table for table in tables)],
        }
    if examples and all(isinstance(example, list) for example in examples):
        return {"type": "array", "items": _of_example([item for example in examples for item in example])}
    kinds = {_kind(example) for example in examples}
    shown = [example for example in dict.fromkeys(map(str, examples)) if example]
    schema: JsonObject = {"type": kinds.pop()} if len(kinds) == 1 else {}
    return {**schema, "examples": shown} if schema.get("type") == "string" and shown else schema


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    return "number" if isinstance(value, float) else "string"


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


_TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")


def _check(where: str, parameters: JsonObject) -> None:
    try:
        json_schema.check_schema(parameters)
    except NotASchemaError as error:
        value = follow(parameters, ".".join(map(str, error.path)))
        if error.path[-1:] == ("type",) and isinstance(value, str):
            raise ConfigError(
                f"{where}: {error.place('parameters')}: unknown type {value!r}, {hint(value, _TYPES)}"
            ) from None
        raise ConfigError(f"{where}: {error.place('parameters')} is not a JSON Schema: {error}") from None
    problem = (
        problem_in_json(parameters, "parameters")
        or reference_problem(parameters)
        or _misspelt_keyword(parameters, "parameters")
    )
    if problem is not None:
        raise ConfigError(f"{where}: {problem}")


def _misspelt_keyword(schema: Any, place: str) -> str | None:
    """Return the problem of the first misspelled keyword in a schema and those below it, ``None`` without one."""
    if not isinstance(schema, Mapping):
        return None
    node = cast("Mapping[str, Any]", schema)
    for key in node:
        if (meant := misspelt(key, _COMMON)) is not None and key not in _RARE:
            return f"{place}.{key}: unknown, did you mean {meant!r}?"
    properties: Any = node.get("properties")
    below = [(f"{place}.items", node.get("items"))]
    if isinstance(properties, Mapping):
        items = cast("Mapping[str, Any]", properties).items()
        below += [(f"{place}.properties.{name}", inner) for name, inner in items]
    return next((found for path, inner in below if (found := _misspelt_keyword(inner, path)) is not None), None)
