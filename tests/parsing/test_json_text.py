"""Reading JSON with lone surrogates."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from jumpseat.adapters.wire import parse_json
from jumpseat.errors import ProviderProtocolError
from jumpseat.parsing.json_text import MOST_CONTAINERS, SurrogateRepair, TooManyContainersError, read_json
from tests.support.cases import check_each


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
        (rb'["\ud83d\\\ude00", "\\\\\ud83d\ude00\ude00"]', ["\ufffd\\\ufffd", "\\\\\U0001f600\ufffd"]),
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


def test_large_texts_are_read_like_small_ones() -> None:
    padding = b'"%b"' % (b"x y" * 100_000)

    def read(text: bytes) -> Any:
        try:
            return read_json(text)
        except orjson.JSONDecodeError:
            return "invalid"

    def check(value: bytes) -> None:
        small, large = read(b"[%b]" % value), read(b"[%b,%b]" % (value, padding))
        expected = small if small == "invalid" else [*small, orjson.loads(padding)]
        assert repr(large) == repr(expected)

    values = [
        *(b"0", b"-0", b"1.5", b"1e5", b"1E-7", b"5e-324", b"1.7976931348623157e308"),
        *(b"1e999", b"-1E+999", b"10.0e310", b"NaN", b"Infinity", b"01", b"1.", b"-"),
        *(b"9223372036854775807", b"18446744073709551615", b"18446744073709551616", b"-9223372036854775809"),
        *(b"123456789012345678901234567890", b"1" * 400, b"0.12345678901234567890123"),
        *(b'"a"', b'"\\ud83d\\ude00"', b'"\\ud800"', b'"\\u00e9\\ud83d x"', b'"\xff"', b'"\x01"', b'"\\x"'),
        *(b'"7c1e999a"', b'" 1e999"', b'{"a": -1e999}', b'"1234567890123456789012"', b"[ 1e+999 ]", b"[1,\n1e999]"),
        *(b'{"a":1,"a":2}', b"{}", b"[1,]", b"[1 2]", b"tru", b"[" * 300 + b"]" * 300, b"[" * 2000 + b"]" * 2000),
    ]
    check_each({value[:40]: value for value in values}, check)


def test_texts_with_too_many_arrays_and_objects_are_refused_unless_these_are_in_strings() -> None:
    count = MOST_CONTAINERS + 1
    for item in (b"[]", b"{}", b'[""]', b'{"\\\\": 0}', b'{"\\"": 0}'):
        text = b"[%b]" % b",".join([item] * count)
        with pytest.raises(TooManyContainersError):
            read_json(text)
        with pytest.raises(ProviderProtocolError, match="more than 100000 arrays and objects"):
            parse_json(text.decode())
    code = 'if a[0] == "{": b = {"\\\\": []}\n' * count
    assert read_json(orjson.dumps([code])) == [code]
    assert len(read_json(b"[%b]" % b",".join([b"[]"] * (MOST_CONTAINERS - 1)))) == MOST_CONTAINERS - 1
