"""Read JSON that may hold lone surrogates.

JavaScript programs send these where a text was cut in the middle of an emoji: half of the pair stays, as an escape
(``\\ud83d``) that strict parsers refuse.
"""

from __future__ import annotations

import gc
import itertools
import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import orjson
from pydantic_core import from_json

# An escape of a surrogate that is not in a pair, in a text without escaped backslashes.
_LONE: Final = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
_ESCAPED_BACKSLASH: Final = rb"\\"
_STAND_IN: Final = b"\xff\xff"
"""Bytes that no text in UTF-8 has."""

# At the end of a part of JSON text: an escape, or a pair of them, that the next part may continue.
_UNFINISHED: Final = re.compile(
    rb"(?<!\\)(?:\\\\)*(\\(?:u[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?|u[0-9a-fA-F]{0,3})?)\Z"
)
_LONGEST_UNFINISHED: Final = 11


_LARGE_BYTES: Final = 1 << 18
MOST_CONTAINERS: Final = 100_000
"""The arrays and objects in one text."""
# Digits and exponents in a text, for which numbers look like `0e0`.
_NUMBER_MARKS: Final = bytes(
    ord("0") if chr(byte).isdecimal() else ord("e") if byte in b"eE" else byte if byte == ord("+") else 0
    for byte in range(256)
)
_UNCOMMON: Final = (b"0" * 19, b"0e000", b"0e+000")
"""Integers that may have more than 64 bits, and numbers that may be infinite: orjson reads them in its own way."""
_MOST_UNCOMMON: Final = 100
"""The number of such places that are looked at; most are in ids, which every message has."""
_LONGEST_START: Final = 64
"""More bytes than a number has in front of an exponent, unless it has a long integer."""


class TooManyContainersError(orjson.JSONDecodeError):
    """A text has more arrays and objects than are read: each takes a hundred times as long as a byte."""

    def __init__(self) -> None:
        super().__init__(f"more than {MOST_CONTAINERS} arrays and objects", "", 0)


def repair_surrogates(text: bytes) -> bytes:
    """Return JSON text with U+FFFD for each lone surrogate in its strings; one that is not in UTF-8 as it is."""
    if _STAND_IN[:1] in text:
        return text
    # A function for each match would take much longer, and there may be one every eight bytes.
    plain = text.replace(_ESCAPED_BACKSLASH, _STAND_IN)
    return _LONE.sub(rb"\\ufffd", plain).replace(_STAND_IN, _ESCAPED_BACKSLASH)


class SurrogateRepair:
    """Replaces the lone surrogates of JSON text that arrives in parts."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """Return the next part; an incomplete escape is held back."""
        data = self._held + data
        self._held = b""
        if b"\\" in data[-_LONGEST_UNFINISHED:] and (unfinished := _UNFINISHED.search(data)) is not None:
            data, self._held = data[: unfinished.start(1)], data[unfinished.start(1) :]
        return repair_surrogates(data) if b"\\u" in data else data

    def end(self) -> bytes:
        """Return the rest of the text."""
        held, self._held = self._held, b""
        return repair_surrogates(held)


def read_json(text: bytes) -> Any:
    """Parse JSON, with U+FFFD for each lone surrogate.

    Raises:
        TooManyContainersError: ``text`` has more arrays and objects than are read.
        orjson.JSONDecodeError: ``text`` is not valid JSON.
    """
    if len(text) < _LARGE_BYTES:
        return _read(text)
    check_containers(text)
    with _uncollected():
        if _has_common_numbers(text):
            # Takes less memory: orjson copies the text and makes a tree of it before it makes objects.
            with suppress(ValueError):
                return from_json(text, allow_inf_nan=False, cache_strings="all")
        return _read(text)


def check_containers(text: bytes) -> None:
    """Check the number of arrays and objects in JSON text, without reading it.

    Raises:
        TooManyContainersError: there are too many.
    """
    if _brackets(text) <= MOST_CONTAINERS:
        return
    # Most brackets of a long text are those of code in its strings, which the quotes separate from the others.
    plain = text.replace(_ESCAPED_BACKSLASH, b"").replace(b'\\"', b"") if b"\\" in text else text
    if _brackets(b"".join(plain.split(b'"')[::2])) > MOST_CONTAINERS:
        raise TooManyContainersError


def _brackets(text: bytes) -> int:
    return text.count(b"[") + text.count(b"{")


def _read(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        repaired = repair_surrogates(text) if b"\\u" in text else text
        if repaired == text:
            raise
        return orjson.loads(repaired)


@contextmanager
def _uncollected() -> Generator[None]:
    """Pause the garbage collector: it would look at the many new objects of a large text again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _has_common_numbers(text: bytes) -> bool:
    """Return whether each number in JSON text is one that all parsers read as the same Python object."""
    marks = text.translate(_NUMBER_MARKS)
    places = itertools.chain.from_iterable(_places(marks, uncommon) for uncommon in _UNCOMMON)
    return not any(number == _MOST_UNCOMMON or _is_in_number(text, place) for number, place in enumerate(places))


def _places(marks: bytes, uncommon: bytes) -> Iterator[int]:
    place = marks.find(uncommon)
    while place >= 0:
        yield place
        place = marks.find(uncommon, place + len(uncommon))


def _is_in_number(text: bytes, place: int) -> bool:
    """Return whether the digit at ``place`` may be one of a number, which follows a separator."""
    before = text[max(0, place - _LONGEST_START) : place].rstrip(b"0123456789.eE+-")
    return not before or before[-1:] in b"[:, \t\r\n"
