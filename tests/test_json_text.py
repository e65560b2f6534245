"""Reading JSON with lone surrogates."""

from __future__ import annotations

import orjson
import pytest

from jumpseat.adapters.wire import parse_json
from jumpseat.json_text import read_json


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (rb'["\ud83d\ude00"]', ["\U0001f600"]),
        (rb'["cut \ud83d"]', ["cut \ufffd"]),
        (rb'["\ude00 cut"]', ["\ufffd cut"]),
        (rb'["\ud83d", "\ud83d\ude00"]', ["\ufffd", "\U0001f600"]),
        (rb'["\uD83D\uD83D\uDE00"]', ["\ufffd\U0001f600"]),
        # "ud83d" after an escaped backslash is not an escape, even beside lone surrogates.
        (rb'["C:\\ud83d", "\ud83d"]', [r"C:\ud83d", "\ufffd"]),
        (rb'["C:\\\ud83d"]', ["C:\\\ufffd"]),
    ],
)
def test_lone_surrogates_become_replacement_characters_and_nothing_else_changes(text: bytes, value: object) -> None:
    assert read_json(text) == value
    assert parse_json(text) == parse_json(text.decode()) == value


@pytest.mark.parametrize("text", [b"", b"{", rb'["\ud83d"', b"\xff"])
def test_invalid_json_is_refused(text: bytes) -> None:
    with pytest.raises(orjson.JSONDecodeError):
        read_json(text)
