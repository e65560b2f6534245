"""The lines of keys: those of every key of a document, or none."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

import pytest

from jumpseat.parsing.key_positions import json_key_lines, key_lines_of, toml_key_lines
from tests.support.cases import check_each

TOML: Final = '''\
title = "a # b = c"   # a comment = 1
numbers = [ 1, 2,     # another
  { x = 1, y = """
[not.a.table]
z = 1""", z.w = 2 },
  [3, 4],
]
date = 1979-05-27 07:32:00

[a.b]                 # begins a, too
"quoted \\"key\\"" = 'c:\\path'
c.d = 1
c.e = 2

[a]
f = \'\'\'
g = 1\'\'\'

[[list]]
h = 1
[list.inner]
i = 1
[[list]]
h = 2
  [[list.deep]]
  j = true
'''
LINES: Final = {
    "title": 1,
    "numbers": 2,
    "numbers[0]": 2,
    "numbers[2].x": 3,
    "numbers[2].y": 3,
    "numbers[2].z.w": 5,
    "numbers[3][1]": 6,
    "date": 8,
    "a.b": 10,
    'a.b.quoted "key"': 11,
    "a.b.c": 12,
    "a.b.c.e": 13,
    "a": 15,
    "a.f": 16,
    "list[0].h": 20,
    "list[0].inner.i": 22,
    "list[1].h": 24,
    "list[1].deep[0].j": 26,
    # Keys that are not there have the line of the table around them.
    "a.b.c.missing": 12,
    "list[1].missing": 23,
    "list[1].deep[7].j": 25,
}
JSON: Final = """\
{
  "servers": {"files": {
    "args": ["-y",
             "{\\"x\\": 1}"],
    "env": {}
  }},
  "last": [[1, 2],
           {"a\\u0062c": null}]
}
"""


@pytest.mark.parametrize("end_of_line", ["\n", "\r\n"])
def test_each_key_of_a_toml_document_has_its_line(end_of_line: str) -> None:
    tomllib.loads(TOML)
    lines = toml_key_lines(TOML.replace("\n", end_of_line))
    assert {place: lines.find(place) for place in LINES} == LINES
    assert lines.find("nothing") is None


def test_each_key_of_a_json_document_has_its_line() -> None:
    lines = json_key_lines(JSON)
    places = {
        "servers.files": 2,
        "servers.files.args[1]": 4,
        "servers.files.env": 5,
        "last[0][1]": 7,
        "last[1].abc": 8,
    }
    assert {place: lines.find(place) for place in places} == places


def test_a_line_that_is_not_certain_is_left_out(tmp_path: Path) -> None:
    def check(text: str) -> None:
        assert toml_key_lines(text).find("a.b") is None

    ambiguous = {
        "a dot in a key": '"a.b" = 1\n[a]\nb = 2\n',
        "invalid": "[a]\nb = 1\nb = 2\n",
        "incomplete": "[a]\nb = [1,\n",
        "too deep": f"a.b = {'[' * 5000}{']' * 5000}",
    }
    check_each(ambiguous, check)
    # Of the members with the same name, a parser keeps the last one, with all that is in it.
    assert json_key_lines('{"a": {"b": 1},\n"a": {"c": 2}}').find("a") is None
    assert key_lines_of(tmp_path / "missing.toml").find("a") is None
    (tmp_path / "adapter.py").write_text("a = 1\n")
    assert key_lines_of(tmp_path / "adapter.py").find("a") is None
