"""What is taken out of texts and events, and what is left alone."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from jumpseat.agent.secrets import MaskedStream, Secrets
from jumpseat.errors import InvalidRequestError
from jumpseat_protocol import events
from tests.protocol.samples import sample

SECRET = 'pa"ss\\wörd'


def secrets(*values: str) -> Secrets:
    made = Secrets()
    made.add(values)
    return made


def test_a_value_is_masked_wherever_it_stands_also_as_json() -> None:
    mask = secrets(SECRET)
    for shown in (SECRET, json.dumps(SECRET)[1:-1], json.dumps(SECRET, ensure_ascii=False)[1:-1]):
        assert mask(f"a {shown} b{shown}") == "a [redacted] b[redacted]"
    assert mask("nothing to hide") == "nothing to hide"


def test_a_longer_secret_is_masked_whole_though_it_begins_with_a_shorter_one() -> None:
    assert secrets("abcd", "abcdefgh")("abcdefgh abcd") == "[redacted] [redacted]"


def test_space_around_a_value_does_not_matter_and_its_long_lines_are_hidden_one_by_one() -> None:
    mask = secrets("  line-one-of-the-key\nline-two-of-the-key\nend\n", "token\n")
    assert mask("1. line-two-of-the-key and token, end") == "1. [redacted] and [redacted], end"


def test_what_occurs_by_chance_is_refused_and_nothing_is_added() -> None:
    mask = Secrets()
    with pytest.raises(InvalidRequestError, match="4 characters"):
        mask.add(["long enough", "abc"])
    mask.add(["", "  \n"])
    assert not mask
    assert mask("long enough") == "long enough"


@pytest.mark.parametrize("cls", get_args(events.EventPayload), ids=lambda cls: cls.type)
def test_every_event_is_masked_but_for_its_ids_and_is_itself_where_there_is_nothing_to_mask(
    cls: type[events.Payload],
) -> None:
    payload = sample(cls, 2)
    masked = secrets("text-")

    shown = events.Event("", "", None, masked.over(payload)).wire()["data"]
    ids = events.Event("", "", None, payload).wire()["data"]

    assert {name: value for name, value in shown.items() if name.endswith("Id")} == {
        name: value for name, value in ids.items() if name.endswith("Id")
    }
    assert secrets("elsewhere").over(payload) is payload
    assert Secrets().over(payload) is payload


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (["abcd"], "xxabcdxxabcabcdab"),
        (["abab"], "xababababx"),
        (["abcd", "abcdefgh"], "abcd abcdefgh abcdef"),
        (["abcd", "cdef"], "abcdef cdefabcd"),
        (["aaaa"], "aaaaaaaaa"),
    ],
)
def test_a_text_in_pieces_is_masked_as_the_whole_and_no_piece_tells_a_secret(values: list[str], text: str) -> None:
    mask = secrets(*values)
    for size in range(1, len(text) + 1):
        stream = MaskedStream(mask)
        told = "".join(stream.feed(text[place : place + size]) for place in range(0, len(text), size))
        assert told + stream.rest() == mask(text)
