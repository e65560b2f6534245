"""Edits of a language server: pure."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from msgspec import Struct


class TextEdit(Struct, frozen=True):
    """The replacement of a part of a text. Places are pairs of a line and a character, in UTF-16 units, from 0."""

    start: tuple[int, int]
    end: tuple[int, int]
    text: str


def edited(text: str, edits: Sequence[TextEdit]) -> str:
    """Return a text with the replacements made.

    Raises:
        ValueError: a place is not in the text, or two replacements overlap.
    """
    places = sorted({place for edit in edits for place in (edit.start, edit.end)})
    offsets = dict(zip(places, _offsets(text, places), strict=True))
    parts: list[str] = []
    last = 0
    for start, end, new in sorted((offsets[edit.start], offsets[edit.end], edit.text) for edit in edits):
        if start < last or end < start:
            raise ValueError("two edits overlap")
        parts += [text[last:start], new]
        last = end
    return "".join([*parts, text[last:]])


def _offsets(text: str, places: Sequence[tuple[int, int]]) -> Iterator[int]:
    """Yield the offsets of places, which are sorted. Each part of a line is read once, however many there are.

    Raises:
        ValueError: a place is not in the text.
    """
    lines = text.splitlines(keepends=True)
    starts = [0, *itertools.accumulate(map(len, lines))]
    line, encoded, units, characters = -1, b"", 0, 0
    for number, unit in places:
        if number == len(lines) and unit == 0:
            yield len(text)
            continue
        if not 0 <= number < len(lines):
            raise ValueError(f"there is no line {number + 1}")
        if number != line:
            line, encoded, units, characters = number, lines[number].encode("utf-16-le", "surrogatepass"), 0, 0
        # A place in the middle of a pair is behind it.
        wanted = unit + (0xDC <= int.from_bytes(encoded[2 * unit + 1 : 2 * unit + 2]) <= 0xDF)
        characters += len(encoded[2 * units : 2 * wanted].decode("utf-16-le", "surrogatepass"))
        units = wanted
        yield starts[number] + characters
