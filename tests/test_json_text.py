"""Reading JSON with lone surrogates."""

from __future__ import annotations

import orjson
import pytest

from jumpseat.adapters.wire import parse_json
from jumpseat.json_text import SurrogateRepair, read_json


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


def test_text_in_parts_is_repaired_wherever_the_parts_end() -> None:
    text = rb'["a \ud83d", "\ud83d\ude00", "C:\\ud83d\\", "\ude00\uD83D\uD83D\n", "\ud83d\\", "\ud83d\u0041"]\ud83d'
    wanted = (
        rb'["a \ufffd", "\ud83d\ude00", "C:\\ud83d\\", "\ufffd\ufffd\ufffd\n", "\ufffd\\", "\ufffd\u0041"]\ufffd'
    )
    for size in range(1, len(text) + 1):
        repair = SurrogateRepair()
        parts = [repair.feed(text[start : start + size]) for start in range(0, len(text), size)]
        assert b"".join([*parts, repair.end()]) == wanted
