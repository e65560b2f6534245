"""Validate values against JSON Schemas of unknown origin, hostile ones included."""

from __future__ import annotations

import time
from typing import Any

import pytest

from jumpseat.agent.json_schema import MAX_PROBLEMS, UnusableSchemaError, problems_of

CATASTROPHIC = "^(a|a)+(a|aa)+$"
VICTIM = "a" * 60 + "!"


def problems(value: Any, schema: dict[str, Any]) -> list[str]:
    return [f"{problem.pointer}: {problem.text}" for problem in problems_of(value, schema)]


def test_patterns_are_evaluated() -> None:
    assert problems("ab-12", {"pattern": "^[a-z]{2}-\\d+$"}) == []
    assert problems("ab", {"pattern": "^\\d+$"}) == [r": 'ab' does not match '^\\d+$'"]
    assert problems("é", {"pattern": "^\\p{L}$"}) == []
    closed: dict[str, Any] = {"patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": False}
    assert problems({"x-a": "1"}, closed) == []
    assert problems({"x-a": 1, "y": 2}, closed) == [
        "/x-a: 1 is not of type 'string'",
        ": Additional properties are not allowed ('y' was unexpected)",
    ]


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (VICTIM, {"pattern": CATASTROPHIC}),
        (VICTIM, {"pattern": "(a+)+$"}),
        ([VICTIM] * 1000, {"items": {"pattern": CATASTROPHIC}}),
        ({VICTIM: 1}, {"patternProperties": {CATASTROPHIC: {"type": "string"}}, "additionalProperties": False}),
        ({VICTIM: 1}, {"patternProperties": {CATASTROPHIC: {"type": "string"}}, "unevaluatedProperties": False}),
        ({VICTIM: 1}, {"propertyNames": {"pattern": CATASTROPHIC}}),
        ([{"n": n} for n in range(5000)], {"uniqueItems": True}),
    ],
)
def test_an_evaluation_that_would_take_forever_finds_no_problems(value: Any, schema: dict[str, Any]) -> None:
    begun = time.process_time()
    assert problems(value, schema) in ([], [f": {VICTIM!r} does not match {schema.get('pattern')!r}"])
    assert time.process_time() - begun < 5


@pytest.mark.parametrize("pattern", ["(", "[z-a]"])
def test_a_pattern_that_cannot_be_parsed_finds_no_problems(pattern: str) -> None:
    assert problems("x", {"pattern": pattern, "type": "string"}) == []


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$ref": "#/$defs/nowhere"},
        {"$ref": "http://127.0.0.1:9/schema"},
        {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"},
        {"type": "nonsense"},
    ],
)
def test_an_unusable_schema_is_an_error_of_its_own(schema: dict[str, Any]) -> None:
    with pytest.raises(UnusableSchemaError):
        problems_of({}, schema)


@pytest.mark.thorough
def test_references_that_multiply_are_limited() -> None:
    nested: Any = "x"
    for _ in range(60):
        nested = [nested]
    twice = {"allOf": [{"items": {"$ref": "#/$defs/a"}}] * 2}
    with pytest.raises(UnusableSchemaError):
        problems_of(nested, {"$defs": {"a": twice}, "$ref": "#/$defs/a"})


@pytest.mark.thorough
def test_unevaluated_properties_that_multiply_are_limited() -> None:
    schema: dict[str, Any] = {"required": ["a"]}
    for _ in range(40):
        schema = {"anyOf": [schema], "unevaluatedProperties": False}
    with pytest.raises(UnusableSchemaError):
        problems_of({"a": 1}, schema)


def test_the_number_of_problems_is_limited() -> None:
    assert len(problems_of(["x"] * 100, {"items": {"type": "number"}})) == MAX_PROBLEMS
