"""Parsing of event streams. ``test_every_adapter.py`` splits whole recordings; these tests cover corner cases."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable
from typing import Final

import pytest

from jumpseat.adapters.transport.sse import EventSplitter, JsonLinesDecoder, ServerEvent, SseDecoder
from jumpseat.errors import ProviderProtocolError
from tests.support.cases import all_cases


def split(pieces: Iterable[bytes], splitter: EventSplitter | None = None) -> list[ServerEvent]:
    splitter = splitter or SseDecoder()
    return [event for piece in pieces for event in splitter.feed(piece)] + splitter.finish()


STREAMS: Final[list[tuple[str, list[ServerEvent]]]] = [
    ("data: a\n\n", [(None, "a")]),
    ("data:a\n\ndata:  b\n\n", [(None, "a"), (None, " b")]),
    ("event: x\ndata: a\n\ndata: b\n\n", [("x", "a"), (None, "b")]),
    ("event: x\n\ndata: b\n\n", [(None, "b")]),
    ("event:\ndata: b\n\n", [(None, "b")]),
    ("data: a\ndata: b\ndata:\ndata: c\n\n", [(None, "a\nb\n\nc")]),
    ("data\n\n", [(None, "")]),
    ("data:\n\n", [(None, "")]),
    (": comment\n\n:\n\ndata: a\n: inside\ndata: b\n\n", [(None, "a\nb")]),
    ("id: 1\nretry: 5\nnonsense: x\ndatum: y\ndata: a\n\n", [(None, "a")]),
    ("\n\n\ndata: a\n\n\n\n", [(None, "a")]),
    ("data: a\r\n\r\ndata: b\r\rdata: c\n\n", [(None, "a"), (None, "b"), (None, "c")]),
    ("data: a\r\n\ndata: b\n\r\n", [(None, "a"), (None, "b")]),
    ("\ufeffdata: a\n\n", [(None, "a")]),
    ("data: a\n\n\ufeffdata: b\n\n", [(None, "a")]),
    ("data: ü\u2028\x0b\x1c\x85ü🌍\n\n", [(None, "ü\u2028\x0b\x1c\x85ü🌍")]),
    ("data: a\n\ndata: no blank line", [(None, "a"), (None, "no blank line")]),
    ("data: a\n\ndata: no blank line\n", [(None, "a"), (None, "no blank line")]),
    ('data: a\n\nerror: {"code": 500}\n\n', [(None, "a"), (None, '{"error": {"code": 500}}')]),
    ("data: {}\n\ndata: [done]\n\n", [(None, "{}"), (None, "[DONE]")]),
    ("", []),
    ("\r\n", []),
]


def test_a_stream_is_parsed_by_the_standard_wherever_it_is_split() -> None:
    with all_cases() as case:
        for text, events in STREAMS:
            with case(repr(text)):
                content = text.encode()

                assert split([content]) == events
                assert split([content[i : i + 1] for i in range(len(content))]) == events
                assert split([b"", content, b""]) == events
                for border in range(len(content)):
                    assert split([content[:border], content[border:]]) == events


def test_bytes_that_are_not_utf_8_become_replacement_characters() -> None:
    assert split([b"data: a\xff\xfeb\n\n"]) == [(None, "a\ufffd\ufffdb")]


def test_random_streams_are_parsed_identically_wherever_they_are_split() -> None:
    chance = random.Random(1)
    for _ in range(300):
        rows = [
            chance.choice(["data: x", "data:", "event: e", ":c", "id: 1", "", "", "ü", "data: ü🌍"])
            + chance.choice(["\n", "\n", "\r\n", "\r"])
            for _ in range(chance.randrange(1, 20))
        ]
        content = "".join(rows).encode()
        whole = split([content])
        cuts = sorted(chance.randrange(len(content) + 1) for _ in range(6))
        pieces = [content[a:b] for a, b in zip([0, *cuts], [*cuts, len(content)], strict=True)]
        assert split(pieces) == whole
        assert split([content[i : i + 1] for i in range(len(content))]) == whole


def test_an_error_between_the_events_is_returned() -> None:
    errors = ('{"error": "x"}', '[{\n  "error": {\n    "code": 503\n  }\n}]')
    with all_cases() as case:
        for before, error, end in itertools.product(("", "data: a\n", "data: a\n\n"), errors, ("", "\n", "\n\n")):
            with case(repr(before + error + end)):
                content = f"{before}{error}{end}".encode()
                expected = [*([(None, "a")] if before else []), (None, error)]
                for step in (1, 5, len(content)):
                    assert split([content[i : i + step] for i in range(0, len(content), step)]) == expected


def test_other_json_between_the_events_is_not_an_event() -> None:
    assert split([b'{"a": 1}\n\ndata: a\n\n[\n' + b"{\n" * 1000]) == [(None, "a")]


@pytest.mark.parametrize(
    "pieces",
    [
        [b"data: " + b"x" * 200],
        [b"x" * 60, b"x" * 60],
        [b"data: " + b"x" * 60 + b"\n", b"data: " + b"x" * 60 + b"\n"],
        [b"data: a\n"] * 60,
        [b"data: a\n" * 60],
    ],
)
def test_an_event_beyond_the_limit_is_refused(pieces: list[bytes]) -> None:
    splitter = SseDecoder(max_event_bytes=100)
    with pytest.raises(ProviderProtocolError, match="the limit of 100 bytes"):
        split(pieces, splitter)


def test_the_limit_applies_to_one_event_and_not_to_the_stream() -> None:
    content = (b"data: " + b"x" * 50 + b"\n\n") * 50

    for step in (7, len(content)):
        pieces = [content[i : i + step] for i in range(0, len(content), step)]
        assert len(split(pieces, SseDecoder(max_event_bytes=100))) == 50


@pytest.mark.parametrize("step", [1, 3, 1000])
def test_json_lines_are_split_at_line_ends(step: int) -> None:
    content = '{"a":1}\r\n\n  {"b":"ü"} \ndata: {"c":3}\n{"d":4}'.encode()
    pieces = [content[i : i + step] for i in range(0, len(content), step)]

    events = split(pieces, JsonLinesDecoder())
    assert events == [(None, '{"a":1}'), (None, '{"b":"ü"}'), (None, '{"c":3}'), (None, '{"d":4}')]


def test_events_without_blank_lines_between_them_are_told_apart() -> None:
    unnamed = b'data: {"a": 1}\ndata: {"b": {}}\ndata: [DONE]\n'
    named = b'event: one\ndata: {"a": 1}\nevent: two\ndata: {"b": 2}\n'
    several_rows = b'data: {\ndata: "a": {}\ndata: }\n\n'
    name_last = b'data: {"a": 1}\nevent: one\n\n'

    assert split([unnamed]) == [(None, '{"a": 1}'), (None, '{"b": {}}'), (None, "[DONE]")]
    assert split([named]) == [("one", '{"a": 1}'), ("two", '{"b": 2}')]
    assert split([several_rows]) == [(None, '{\n"a": {}\n}')]
    assert split([name_last]) == [("one", '{"a": 1}')]
