"""Patterns: matching values, and the differences reported for others."""

from __future__ import annotations

from typing import Any

import pytest

from jumpseat_testkit.patterns import ScriptError, check_pattern, differences, fill

UUID = "0b6f0b5e-6c7b-4a57-9d5e-0c7a8b3c2d1e"


@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 2], "c": 3}}),
        ([1, "..."], [1, 2, 3]),
        (["..."], []),
        ({"$exactly": {"a": 1}}, {"a": 1}),
        ({"$one_of": [1, "two"]}, "two"),
        ({"$has": [{"n": 2}, {"n": 1}]}, [{"n": 1}, {"n": 2}, {"n": 3}]),
        ("<any>", False),
        ("<number>", 1.5),
        ("<id>", UUID),
        ("<time>", "2026-01-02T03:04:05.678Z"),
        ({"gone": "<absent>"}, {"gone": None}),
        ({"gone": "<absent>"}, {}),
        ("/^a.c$/", "a\nc"),
        ("=/^a.c$/", "/^a.c$/"),
        (1, 1.0),
        (None, None),
    ],
)
def test_a_pattern_matches(pattern: Any, value: Any) -> None:
    check_pattern(pattern)
    assert differences(pattern, value, {}) == []


@pytest.mark.parametrize(
    ("pattern", "value", "message"),
    [
        ({"a": {"b": 1}}, {"a": {"b": 2}}, "a.b: expected 1, got 2"),
        ({"a": 1}, {}, "a: expected 1, got nothing"),
        ({"a": 1}, None, '(root): expected {"a": 1}, got nothing'),
        ([1, {"a": 2}], [1, {"a": 3}], "[1].a: expected 2, got 3"),
        ([1], [1, 2], "(root): expected 1 element, got 2: [1, 2]"),
        ([1, 2, "..."], [1], "(root): expected 2 or more elements, got 1: [1]"),
        ({"$exactly": {"a": 1}}, {"a": 1, "b": 2}, '(root): expected exactly {"a": 1}, got {"a": 1, "b": 2}'),
        ({"$one_of": [1, 2]}, 3, "(root): expected one of [1, 2], got 3"),
        ({"$has": [5]}, [1], "(root): expected an element matching 5, got [1]"),
        ({"$has": [5]}, 5, "(root): expected an array, got 5"),
        (1, True, "(root): expected 1, got true"),
        ("<number>", True, "(root): expected <number>, got true"),
        ("<any>", None, "(root): expected <any>, got null"),
        ("<absent>", 0, "(root): expected no value, got 0"),
        ("/b/", "a", '(root): expected a string matching /b/, got "a"'),
        ("=a", "b", '(root): expected "a", got "b"'),
    ],
)
def test_a_difference_names_the_place_the_expected_and_the_actual_value(
    pattern: Any, value: Any, message: str
) -> None:
    assert [str(difference) for difference in differences(pattern, value, {})] == [message]


def test_a_name_captures_the_first_value_and_matches_only_that_value_afterwards() -> None:
    captures: dict[str, Any] = {}
    assert differences({"id": "${id}"}, {"id": 7}, captures) == []
    assert captures == {"id": 7}
    (difference,) = differences({"id": "${id}"}, {"id": "7"}, captures)
    assert str(difference) == 'id: expected 7 (${id}), got "7"'


def test_a_name_inside_a_string_captures_or_matches_a_part() -> None:
    captures: dict[str, Any] = {"host": "a.b"}
    assert differences("http://${host}/${path}?x", "http://a.b/one/two?x", captures) == []
    assert captures["path"] == "one/two"
    assert differences("http://${host}/", "http://a-b/", captures)


def test_a_pattern_that_does_not_match_captures_nothing() -> None:
    captures: dict[str, Any] = {}
    assert differences({"id": "${id}", "n": 1}, {"id": 7, "n": 2}, captures)
    assert captures == {}


def test_a_string_that_is_only_a_name_is_replaced_by_a_value_of_its_type() -> None:
    captures = {"n": 7, "who": "me"}
    assert fill({"a": "${n}", "b": ["${who} has ${n}"]}, captures) == {"a": 7, "b": ["me has 7"]}
    with pytest.raises(ScriptError, match=r"\$\{x\} has no value at this point"):
        fill("${x}", captures)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("/(/", r"invalid regular expression /\(/: "),
        ({"a": ["<strnig>"]}, "unknown pattern '<strnig>'; to match this string literally, write '=<strnig>'"),
        ({"$oneof": []}, r"unknown pattern '\$oneof'; expected \$exactly"),
        ({"$has": 1}, r"'\$has' expects an array"),
    ],
)
def test_an_invalid_pattern_is_refused(pattern: Any, message: str) -> None:
    with pytest.raises(ScriptError, match=message):
        check_pattern(pattern)
