"""Validate arguments against the schemas of tools: violations are named, and no schema stops a call."""

from __future__ import annotations

from typing import Any, Final

import pytest

from jumpseat.agent.json_schema import MAX_PROBLEMS
from jumpseat.tools.schema_check import MAX_VALUES, argument_problems, missing_defaults

SCHEMA: Final[dict[str, Any]] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 1, "description": "The file"},
        "mode": {"type": "string", "enum": ["r", "w"]},
        "limit": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}], "default": None},
        "edits": {"type": "array", "items": {"$ref": "#/$defs/Edit"}, "maxItems": 3},
        "flag": {"type": ["boolean", "null"]},
        "extra": {"type": "object", "additionalProperties": {"type": "number"}},
    },
    "required": ["path"],
    "additionalProperties": False,
    "$defs": {"Edit": {"type": "object", "properties": {"old": {"type": "string"}}, "required": ["old"]}},
}
UNLUCKY: Final = "^(a|a)+(a|aa)+$"
FITTING: Final[list[dict[str, Any]]] = [
    {"path": "a"},
    {"path": "a", "mode": "w", "limit": 3, "flag": None},
    {"path": "a", "limit": None, "edits": [{"old": "x"}, {"old": "", "more": 1}], "extra": {"a": 1, "b": 2.5}},
    {"path": "a", "limit": 2.0},
]


@pytest.mark.parametrize("arguments", FITTING)
def test_fitting_arguments_have_no_problems(arguments: dict[str, Any]) -> None:
    assert argument_problems(arguments, SCHEMA) == []


@pytest.mark.parametrize(
    ("arguments", "problems"),
    [
        ({}, ["arguments: 'path' is a required property"]),
        ({"path": 3}, ["path: 3 is not of type 'string'"]),
        ({"path": "a", "mode": "x"}, ["mode: 'x' is not one of ['r', 'w']"]),
        ({"path": "a", "edits": [{"old": "x"}, {}]}, ["edits.1: 'old' is a required property"]),
        ({"path": "a", "flag": 1}, ["flag: 1 is not of type 'boolean', 'null'"]),
        ({"path": "a", "extra": {"k": "v"}}, ["extra.k: 'v' is not of type 'number'"]),
        (
            {"path": "", "other": 1},
            [
                "path: '' should be non-empty",
                "arguments: Additional properties are not allowed ('other' was unexpected)",
            ],
        ),
    ],
)
def test_problems_are_named_with_their_location(arguments: dict[str, Any], problems: list[str]) -> None:
    assert sorted(argument_problems(arguments, SCHEMA)) == sorted(problems)


def test_problems_are_few_and_short() -> None:
    many = argument_problems(
        {"path": "x" * 5000, "edits": ["y" * 5000] * 100}, {**SCHEMA, "properties": {"path": False}}
    )
    assert all(len(problem) < 250 for problem in many)
    numbers = {"type": "object", "additionalProperties": {"type": "number"}}
    assert len(argument_problems({str(n): "x" for n in range(100)}, numbers)) == MAX_PROBLEMS


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nonsense"},
        {"type": "object", "properties": ["path"]},
        {"type": "object", "required": "path"},
        {"$ref": "#/$defs/nowhere"},
        {"$ref": "http://127.0.0.1:9/schema"},
        {"$ref": "#"},
        {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"},
        {"$schema": "https://example.org/own", "vendorWord": {"type": 3}},
        {"properties": {"default": {"type": "string", "pattern": UNLUCKY}}},
        {"patternProperties": {UNLUCKY: {"type": "number"}}, "additionalProperties": False},
        {"properties": {"default": {"pattern": UNLUCKY}, "path": {"enum": [{"pattern": "("}, "x"], "not": {}}}},
        {"properties": {"path": {"pattern": "("}}},
    ],
)
def test_an_invalid_or_endless_or_dangerous_schema_never_rejects_a_call(schema: dict[str, Any]) -> None:
    arguments = {"a" * 60 + "!": "b", "default": "a" * 60 + "!"}
    assert argument_problems(arguments, schema) == []


def test_recursive_schemas_and_large_arrays_are_validated_in_bounded_time() -> None:
    nested: Any = "x"
    for _ in range(60):
        nested = [nested]
    two = [{"type": "number"}, {"type": "array", "items": {"$ref": "#/$defs/a"}}, {"items": {"$ref": "#/$defs/a"}}]
    schema = {"$defs": {"a": {"anyOf": two}}, "properties": {"deep": {"$ref": "#/$defs/a"}}}
    argument_problems({"deep": nested}, schema)
    argument_problems(
        {"many": [{"n": n} for n in range(MAX_VALUES)]}, {"properties": {"many": {"uniqueItems": True}}}
    )


def test_required_properties_that_are_missing_get_their_defaults() -> None:
    schema = {
        "type": "object",
        "properties": {
            "term": {"type": "string"},
            "limit": {"type": "number", "default": 10},
            "all": {"default": 1},
        },
        "required": ["term", "limit"],
    }
    assert missing_defaults({"term": "John"}, schema) == {"limit": 10}
    assert missing_defaults({"limit": 3}, schema) == {}
    assert missing_defaults({}, {"required": "limit", "properties": []}) == {}
