"""Judging values by the schemas of others, whatever those are."""

from __future__ import annotations

import time
from typing import Any

import pytest

from jumpseat.agent.json_schema import MAX_PROBLEMS, UnusableSchemaError, problems_of

UNLUCKY = "^(a|a)+(a|aa)+$"
VICTIM = "a" * 60 + "!"


def judged(value: Any, schema: dict[str, Any]) -> list[str]:
    return [f"{one.pointer}: {one.text}" for one in problems_of(value, schema)]


def test_patterns_are_judged() -> None:
    assert judged("ab-12", {"pattern": "^[a-z]{2}-\\d+$"}) == []
    assert judged("ab", {"pattern": "^\\d+$"}) == [r": 'ab' does not match '^\\d+$'"]
    assert judged("é", {"pattern": "^\\p{L}$"}) == []
    closed: dict[str, Any] = {"patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": False}
    assert judged({"x-a": "1"}, closed) == []
    assert judged({"x-a": 1, "y": 2}, closed) == [
        "/x-a: 1 is not of type 'string'",
        ": Additional properties are not allowed ('y' was unexpected)",
    ]


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (VICTIM, {"pattern": UNLUCKY}),
        (VICTIM, {"pattern": "(a+)+$"}),
        ([VICTIM] * 1000, {"items": {"pattern": UNLUCKY}}),
        ({VICTIM: 1}, {"patternProperties": {UNLUCKY: {"type": "string"}}, "additionalProperties": False}),
        ({VICTIM: 1}, {"patternProperties": {UNLUCKY: {"type": "string"}}, "unevaluatedProperties": False}),
        ({VICTIM: 1}, {"propertyNames": {"pattern": UNLUCKY}}),
        ([{"n": n} for n in range(5000)], {"uniqueItems": True}),
    ],
)
def test_what_would_take_forever_says_nothing_against_a_value(value: Any, schema: dict[str, Any]) -> None:
    begun = time.process_time()
    assert judged(value, schema) in ([], [f": {VICTIM!r} does not match {schema.get('pattern')!r}"])
    assert time.process_time() - begun < 5


@pytest.mark.parametrize("pattern", ["(", "[z-a]"])
def test_a_pattern_that_cannot_be_read_says_nothing_against_a_value(pattern: str) -> None:
    assert judged("x", {"pattern": pattern, "type": "string"}) == []


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
def test_a_schema_of_no_use_is_an_error_of_its_own(schema: dict[str, Any]) -> None:
    with pytest.raises(UnusableSchemaError):
        problems_of({}, schema)


def test_references_that_multiply_come_to_an_end() -> None:
    nested: Any = "x"
    for _ in range(60):
        nested = [nested]
    twice = {"allOf": [{"items": {"$ref": "#/$defs/a"}}] * 2}
    with pytest.raises(UnusableSchemaError):
        problems_of(nested, {"$defs": {"a": twice}, "$ref": "#/$defs/a"})


def test_problems_are_few() -> None:
    assert len(problems_of(["x"] * 100, {"items": {"type": "number"}})) == MAX_PROBLEMS
