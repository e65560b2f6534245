"""What fits a pattern, and what is said of what does not."""

from __future__ import annotations

from typing import Any

import pytest

from jumpseat.script.patterns import ScriptError, check_pattern, differences, fill

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
def test_what_fits(pattern: Any, value: Any) -> None:
    check_pattern(pattern)
    assert differences(pattern, value, {}) == []


@pytest.mark.parametrize(
    ("pattern", "value", "said"),
    [
        ({"a": {"b": 1}}, {"a": {"b": 2}}, "a.b: expected 1, got 2"),
        ({"a": 1}, {}, "a: expected 1, got nothing"),
        ({"a": 1}, None, 'the whole: expected {"a": 1}, got nothing'),
        ([1, {"a": 2}], [1, {"a": 3}], "[1].a: expected 2, got 3"),
        ([1], [1, 2], "the whole: expected 1 element, got 2: [1, 2]"),
        ([1, 2, "..."], [1], "the whole: expected 2 or more elements, got 1: [1]"),
        ({"$exactly": {"a": 1}}, {"a": 1, "b": 2}, 'the whole: expected exactly {"a": 1}, got {"a": 1, "b": 2}'),
        ({"$one_of": [1, 2]}, 3, "the whole: expected one of [1, 2], got 3"),
        ({"$has": [5]}, [1], "the whole: expected an element like 5, got [1]"),
        ({"$has": [5]}, 5, "the whole: expected a list, got 5"),
        (1, True, "the whole: expected 1, got true"),
        ("<number>", True, "the whole: expected <number>, got true"),
        ("<any>", None, "the whole: expected <any>, got null"),
        ("<absent>", 0, "the whole: expected nothing, got 0"),
        ("/b/", "a", 'the whole: expected a text like /b/, got "a"'),
        ("=a", "b", 'the whole: expected "a", got "b"'),
    ],
)
def test_what_is_said_of_what_does_not_fit(pattern: Any, value: Any, said: str) -> None:
    assert [str(one) for one in differences(pattern, value, {})] == [said]


def test_a_name_takes_what_comes_first_and_must_be_that_from_then_on() -> None:
    known: dict[str, Any] = {}
    assert differences({"id": "${id}"}, {"id": 7}, known) == []
    assert known == {"id": 7}
    (difference,) = differences({"id": "${id}"}, {"id": "7"}, known)
    assert str(difference) == 'id: expected 7 (${id}), got "7"'


def test_a_part_of_a_text_is_kept_and_what_is_known_must_stand_there() -> None:
    known: dict[str, Any] = {"host": "a.b"}
    assert differences("http://${host}/${path}?x", "http://a.b/one/two?x", known) == []
    assert known["path"] == "one/two"
    assert differences("http://${host}/", "http://a-b/", known)


def test_a_pattern_that_does_not_fit_as_a_whole_keeps_nothing() -> None:
    known: dict[str, Any] = {}
    assert differences({"id": "${id}", "n": 1}, {"id": 7, "n": 2}, known)
    assert known == {}


def test_names_are_filled_in_with_their_types_where_they_are_all_of_a_text() -> None:
    known = {"n": 7, "who": "me"}
    assert fill({"a": "${n}", "b": ["${who} has ${n}"]}, known) == {"a": 7, "b": ["me has 7"]}
    with pytest.raises(ScriptError, match=r"nothing is known as \$\{x\} here"):
        fill("${x}", known)


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("/(/", "is not a regular expression"),
        ({"a": ["<strnig>"]}, "there is no pattern '<strnig>'"),
        ({"$oneof": []}, r"there is no pattern '\$oneof'"),
        ({"$has": 1}, r"'\$has' takes a list"),
    ],
)
def test_what_can_never_work_is_said_at_once(pattern: Any, said: str) -> None:
    with pytest.raises(ScriptError, match=said):
        check_pattern(pattern)
