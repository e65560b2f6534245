"""Conversion of schemas for Gemini's wires."""

from __future__ import annotations

import copy
import json
from typing import Any, Final

import pytest

from jumpseat.adapters.wires.gemini_schema import MAX_NODES, inline_schema, openapi_parameters, openapi_subset
from tests.support.cases import all_cases

TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "number"}


def subset(schema: dict[str, Any]) -> dict[str, Any]:
    return openapi_subset(inline_schema(schema))


SCHEMAS: Final[list[tuple[dict[str, Any], dict[str, Any] | None]]] = [
    ({"type": "string", "$schema": "s", "$id": "i", "$comment": "c", "strict": True}, TEXT),
    ({"type": "object", "additionalProperties": {"type": "string"}}, {"type": "object"}),
    ({"type": "string", "format": "uri", "examples": ["a"], "readOnly": True}, TEXT),
    ({"type": "string", "format": "date-time"}, {"type": "string", "format": "date-time"}),
    ({"type": "integer", "format": "int64", "exclusiveMinimum": 0}, {"type": "integer", "format": "int64"}),
    ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
    ({"type": ["null"]}, {"type": "string", "nullable": True}),
    ({"type": "null"}, {"type": "string", "nullable": True}),
    (
        {"type": ["string", "number", "null"], "description": "d", "minimum": 1},
        {
            "anyOf": [
                {"description": "d", "nullable": True, "type": "string"},
                {"description": "d", "nullable": True, "minimum": 1, "type": "number"},
            ]
        },
    ),
    ({"oneOf": [TEXT, {"type": "null"}]}, {"type": "string", "nullable": True}),
    ({"anyOf": [TEXT, NUMBER]}, {"anyOf": [TEXT, NUMBER]}),
    ({"anyOf": [{"const": "a"}, {"enum": ["b", None]}], "description": "d"}, None),
    ({"anyOf": []}, TEXT),
    ({"const": "a"}, {"type": "string", "enum": ["a"]}),
    ({"enum": [1, 2]}, {"type": "integer", "description": "One of: 1, 2."}),
    ({"enum": [1, 2.5], "description": "d."}, {"type": "number", "description": "d. One of: 1, 2.5."}),
    ({"enum": [True]}, {"type": "boolean", "description": "One of: true."}),
    ({"type": "string", "enum": ["", "a"]}, {"type": "string", "description": 'One of: "", "a".'}),
    ({"type": "array"}, {"type": "array", "items": TEXT}),
    ({"type": "array", "items": True}, {"type": "array", "items": TEXT}),
    ({"items": {"type": "number"}, "maxItems": 2}, {"maxItems": 2, "type": "array", "items": NUMBER}),
    ({"type": "array", "items": [TEXT, NUMBER]}, {"type": "array", "items": {"anyOf": [TEXT, NUMBER]}}),
    ({"type": "array", "prefixItems": [TEXT, TEXT]}, {"type": "array", "items": TEXT}),
    ({}, TEXT),
    ({"minimum": 3}, {"minimum": 3, "type": "number"}),
    ({"type": "object", "properties": {"a": True}, "required": ["a", "b"]}, None),
    (
        {
            "allOf": [
                {"properties": {"a": TEXT}, "required": ["a"]},
                {"allOf": [{"properties": {"b": NUMBER}, "required": ["b"]}]},
            ]
        },
        {"type": "object", "properties": {"a": TEXT, "b": NUMBER}, "required": ["a", "b"]},
    ),
]


def test_a_schema_is_converted_to_the_supported_subset() -> None:
    with all_cases() as case:
        for schema, expected in SCHEMAS:
            with case(schema):
                before = copy.deepcopy(schema)
                made = subset(schema)

                if expected is not None:
                    assert made == expected
                assert schema == before
                assert_of_the_subset(made)


def test_references_are_resolved_and_sibling_keywords_win() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "a": {"$ref": "#/$defs/a~1b", "description": "mine"},
            "b": {"$ref": "#/properties/c/anyOf/1"},
            "c": {"anyOf": [TEXT, NUMBER]},
            "gone": {"$ref": "#/$defs/gone"},
            "far": {"$ref": "https://example.com/schema"},
        },
        "$defs": {"a/b": {"type": "string", "description": "its own"}},
    }

    assert inline_schema(schema) == {
        "type": "object",
        "properties": {
            "a": {"type": "string", "description": "mine"},
            "b": NUMBER,
            "c": {"anyOf": [TEXT, NUMBER]},
            "gone": {"type": "object"},
            "far": {"type": "object"},
        },
    }


def test_a_recursive_schema_is_cut() -> None:
    tree = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}}

    assert inline_schema(tree)["properties"]["children"]["items"]["properties"]["children"]["items"] == {
        "type": "object"
    }
    assert inline_schema({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}) == {"type": "object"}
    assert_of_the_subset(subset(tree))


def test_an_exponentially_growing_schema_is_cut() -> None:
    levels = {
        f"l{n}": {"type": "object", "properties": {k: {"$ref": f"#/$defs/l{n + 1}"} for k in "abcd"}}
        for n in range(40)
    }

    made = inline_schema({"$ref": "#/$defs/l0", "$defs": levels})

    assert len(json.dumps(made)) < 100 * MAX_NODES


@pytest.mark.parametrize(
    "schema", [{}, {"type": "object"}, {"type": "object", "properties": {}, "required": ["a"]}]
)
def test_a_function_without_parameters_has_none(schema: dict[str, Any]) -> None:
    assert openapi_parameters(schema) is None


def test_alternative_objects_as_parameters_are_merged() -> None:
    schema = {
        "description": "d",
        "oneOf": [
            {"type": "object", "properties": {"a": TEXT, "x": TEXT}, "required": ["a", "x"]},
            {"type": "object", "properties": {"a": TEXT, "y": NUMBER}, "required": ["a", "y"]},
        ],
    }

    assert openapi_parameters(schema) == {
        "type": "object",
        "description": "d",
        "properties": {"a": TEXT, "x": TEXT, "y": NUMBER},
        "required": ["a"],
    }


ALLOWED = {
    *("type", "format", "title", "description", "nullable", "enum", "default", "example", "propertyOrdering"),
    *("properties", "required", "minProperties", "maxProperties", "items", "minItems", "maxItems"),
    *("minLength", "maxLength", "pattern", "minimum", "maximum", "anyOf"),
}


def assert_of_the_subset(schema: dict[str, Any]) -> None:
    """Assert the documented rules of the wire's ``Schema`` for every node."""
    assert set(schema) <= ALLOWED
    if "anyOf" in schema:
        assert set(schema) == {"anyOf"}
        assert len(schema["anyOf"]) > 1
    else:
        assert schema["type"] in ("string", "number", "integer", "boolean", "array", "object")
    assert ("items" in schema) == (schema.get("type") == "array")
    assert all(isinstance(value, str) and value for value in schema.get("enum", []))
    assert set(schema.get("required", [])) <= set(schema.get("properties", {}))
    for child in (*schema.get("properties", {}).values(), *schema.get("anyOf", [])):
        assert_of_the_subset(child)
    if "items" in schema:
        assert_of_the_subset(schema["items"])
