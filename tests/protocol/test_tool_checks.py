"""The check of tool names and schemas: what providers refuse is found, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from jumpseat_protocol.tool_checks import name_problem, schema_problem


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"type": ["object", "null"], "properties": {}},
        {"anyOf": [{"type": "object"}, {"$ref": "#/$defs/a"}], "$defs": {"a": {"type": "object"}}},
        {"properties": {"type": {"type": ["string", "null"]}, "items": {}, "enum": True}, "required": ["type"]},
        {"type": "object", "additionalProperties": False, "properties": {"a": {"items": [{"type": "null"}]}}},
        {"type": "object", "properties": {"a": {"default": {"type": "x"}, "examples": [{"type": 1}], "const": 1}}},
        {"properties": {"a/b": {"anyOf": [{"$ref": "#"}, {"$ref": "#/properties/a~1b/anyOf/0"}, {"$ref": "#x"}]}}},
        {"properties": {"a": {"$id": "https://x.invalid/a", "items": {"$ref": "#/$defs/of-a"}}}},
    ],
    ids=str,
)
def test_valid_schemas_have_no_problem(schema: dict[str, Any]) -> None:
    assert schema_problem(schema) is None


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ([], "parameters: expected a JSON Schema of type object"),
        ({"type": "string"}, "parameters.type: expected an object schema, got type 'string'"),
        ({"type": "Object"}, "parameters.type: unknown type 'Object', did you mean 'object'?"),
        ({"type": ["object", 7]}, "parameters.type: unknown type 7"),
        ({"properties": []}, "parameters.properties: expected an object"),
        ({"properties": {"a": "string"}}, "parameters.properties.a: expected a JSON Schema"),
        ({"properties": {"a": {"anyOf": {"type": "string"}}}}, "parameters.properties.a.anyOf: expected an array"),
        ({"properties": {"a": {"oneOf": [{"type": "int"}]}}}, "parameters.properties.a.oneOf.0.type: unknown type"),
        ({"properties": {"a": {"enum": "x"}}}, "parameters.properties.a.enum: expected an array"),
        ({"required": [1]}, "parameters.required: expected an array of strings"),
        (
            {"properties": {"a": {"items": {"$ref": "#/$defs/b"}}}, "$defs": {"a": {}}},
            "parameters.properties.a.items.$ref",
        ),
        ({"$defs": {"a": {"not": {"type": "date"}}}}, "parameters.$defs.a.not.type: unknown type 'date'"),
    ],
    ids=str,
)
def test_a_problem_names_its_place(schema: Any, expected: str) -> None:
    assert (schema_problem(schema) or "").startswith(expected)


def test_a_schema_without_end_is_a_problem() -> None:
    schema: dict[str, Any] = {"type": "object"}
    schema["properties"] = {"a": schema}
    assert schema_problem(schema) == "parameters: the schema is nested too deeply"


def test_names_have_the_characters_and_the_length_that_providers_take() -> None:
    assert [name_problem(name) for name in ("a", "get_weather-2", "x" * 64)] == [None, None, None]
    for name in ("", "a b", "a.b", "wétter", "a\n", "x" * 65):
        assert name_problem(name) == f"tool name {name!r}: expected 1 to 64 letters, digits, '_' and '-'"
