"""JSON and YAML in one kind of file: text that PyYAML alone would refuse or read in another way."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jumpseat.parsing.yaml_text import read_foreign_yaml, read_yaml
from jumpseat.store.session.workspace import parse_workspace
from tests.support.cases import check_each

VALUE: Any = {"text": "hello 😀", "number": 1e5, "k" * 2000: ["/", None]}


def test_json_in_all_its_forms_and_yaml_are_read() -> None:
    cases: dict[str, tuple[str, Any]] = {
        "escapes": (json.dumps(VALUE), VALUE),
        "indented by tabs": (json.dumps(VALUE, indent="\t"), VALUE),
        "with a byte order mark": ("\ufeff\n" + json.dumps(VALUE), VALUE),
        "half an emoji": ('{"a": "\\ud83d!"}', {"a": "\ufffd!"}),
        "YAML": ("a: 'x'\nb: [1, 2]\n", {"a": "x", "b": [1, 2]}),
        "YAML in brackets": ("{a: x, b: [1, 2]}", {"a": "x", "b": [1, 2]}),
        "YAML with escapes": ('"\\ud83d\\ude00": "\\ud83d\\ude00 \\ud83d"', {"😀": "😀 \ufffd"}),
    }

    def check(case: tuple[str, Any]) -> None:
        assert read_yaml(case[0]) == case[1]

    check_each(cases, check)


@pytest.mark.thorough
def test_what_is_neither_is_a_value_error() -> None:
    for text in ('{"a": ', "a: b: c", "2024-13-45", "[" * 3000):
        with pytest.raises(ValueError, match=r".+"):
            read_yaml(text)


def test_yaml_of_others_that_takes_long_or_stands_for_more_is_refused() -> None:
    cases = {
        "too long": ("a: b\n" * 4000, "has more than"),
        "too deep": ("a: " + "[" * 65, "nested too deeply"),
        "alias": ("a: &a [x]\nb: *a", "contains an alias"),
        "no YAML": ("a: b\nc: d: e", r"is not YAML \(line 2\)"),
    }

    def check(case: tuple[str, str]) -> None:
        with pytest.raises(ValueError, match=case[1]):
            read_foreign_yaml(case[0])
        assert parse_workspace("s", case[0].encode()) is None

    check_each(cases, check)
    assert read_foreign_yaml("a: [b, {c: d}]") == {"a": ["b", {"c": "d"}]}
