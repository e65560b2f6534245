"""Mask secrets in texts and events."""

from __future__ import annotations

import json

import pytest

from jumpseat.agent.secrets import GROUP_VALUES, MOST_CHARS, MaskedStream, Secrets
from jumpseat.errors import InvalidRequestError
from jumpseat_protocol import events
from tests.protocol.samples import sample
from tests.support.cases import check_each

SECRET = 'pa"ss\\wörd'


def secrets(*values: str) -> Secrets:
    made = Secrets()
    made.add(values)
    return made


def test_a_secret_is_masked_everywhere_also_in_its_json_forms() -> None:
    mask = secrets(SECRET)
    for shown in (SECRET, json.dumps(SECRET)[1:-1], json.dumps(SECRET, ensure_ascii=False)[1:-1]):
        assert mask(f"a {shown} b{shown}") == "a [redacted] b[redacted]"
    assert mask("nothing to hide") == "nothing to hide"


def test_a_secret_that_begins_with_a_shorter_one_is_masked_whole() -> None:
    assert secrets("abcd", "abcdefgh")("abcdefgh abcd") == "[redacted] [redacted]"


def test_surrounding_space_is_ignored_and_long_lines_are_masked_one_by_one() -> None:
    mask = secrets("  line-one-of-the-key\nline-two-of-the-key\nend\n", "token\n")
    assert mask("1. line-two-of-the-key and token, end") == "1. [redacted] and [redacted], end"


def test_a_short_value_is_refused_and_nothing_is_added() -> None:
    mask = Secrets()
    with pytest.raises(InvalidRequestError, match="4 characters"):
        mask.add(["long enough", "abc"])
    mask.add(["", "  \n"])
    assert not mask
    assert mask("long enough") == "long enough"


def test_a_request_with_too_much_to_mask_is_refused() -> None:
    mask = Secrets()
    with pytest.raises(InvalidRequestError, match="characters together"):
        mask.register(["long enough", *(f"value {number}" for number in range(MOST_CHARS // 5))])
    assert not mask
    mask.register(["long enough"])
    assert mask("long enough") == "[redacted]"


@pytest.mark.thorough
def test_secrets_of_different_times_are_masked_together_and_only_the_last_ones_are_looked_at_again() -> None:
    mask = secrets("abcd", "defg")
    for number in range(3 * GROUP_VALUES):
        mask.add([f"value-{number:04}-of-many"])
    mask.add(["abcdefgh", "abcd", "value-0001-of-many"])
    assert mask("abcdefgh abcd xdefgh") == "[redacted] [redacted] x[redacted]h"
    assert mask(f"value-0001-of-many value-{3 * GROUP_VALUES - 1:04}-of-many") == "[redacted] [redacted]"
    assert mask.split("abcdefgh value-00") == ("[redacted] ", "value-00")


def test_a_long_value_is_found_by_all_of_it() -> None:
    value = "-".join(f"part{number}" for number in range(10_000))
    mask = secrets(value, "part1-part2x")
    assert mask(f"a {value[:-1]} {value} {value[:40]} part1-part2x") == (
        f"a {value[:-1]} [redacted] {value[:40]} [redacted]"
    )


def test_every_event_is_masked_except_for_its_ids_and_returned_unchanged_without_secrets() -> None:
    masked, elsewhere = secrets("text-"), secrets("elsewhere")

    def check(cls: type[events.Payload]) -> None:
        payload = sample(cls, 2)
        shown = events.Event.of("", "", None, masked.mask(payload)).wire()["data"]
        ids = events.Event.of("", "", None, payload).wire()["data"]

        assert {name: value for name, value in shown.items() if name.endswith("Id")} == {
            name: value for name, value in ids.items() if name.endswith("Id")
        }
        assert elsewhere.mask(payload) is payload
        assert Secrets().mask(payload) is payload

    check_each(events.EVENT_TYPES, check)


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
def test_a_text_in_pieces_is_masked_like_the_whole_text(values: list[str], text: str) -> None:
    mask = secrets(*values)
    for size in range(1, len(text) + 1):
        stream = MaskedStream(mask)
        shown = "".join(stream.feed(text[place : place + size]) for place in range(0, len(text), size))
        assert shown + stream.flush() == mask(text)
