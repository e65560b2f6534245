"""Validation of structured answers."""

from __future__ import annotations

from typing import Any

from jumpseat.agent.json_schema import MAX_PROBLEMS
from jumpseat.agent.model_calls.structured import problems_of


def test_problems_name_their_locations_and_are_limited() -> None:
    schema: dict[str, Any] = {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "number"}}}}
    assert problems_of('[{"n": 1}, {}]', schema) == []
    assert problems_of('[{}, {"n": "x"}]', schema) == ["/1/n: 'x' is not of type 'number'"]
    many = problems_of(f"[{','.join(['{}', '7'] * 50)}]", schema)
    assert (many[0], len(many)) == ("/1: 7 is not of type 'object'", MAX_PROBLEMS)
    (long,) = problems_of(f'"{"x" * 5000}"', schema)
    assert len(long) < 250


def test_an_answer_that_is_not_json_is_one_problem() -> None:
    assert problems_of(" ", {}) == ["the answer is empty"]
    for text in ("```json\n{}\n```", "{} {}", "NaN", "[" * 5000):
        (problem,) = problems_of(text, {})
        assert problem.startswith("the answer is not JSON: ")


def test_the_dialect_is_the_one_named_by_the_schema() -> None:
    draft_4 = {"$schema": "http://json-schema.org/draft-04/schema#", "maximum": 3, "exclusiveMaximum": True}
    assert problems_of("3", draft_4) != []
    assert problems_of("3", {"exclusiveMaximum": 3}) != []
    assert problems_of("2", draft_4) == []
