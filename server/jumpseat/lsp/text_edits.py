"""Edits of a language server: pure."""

from __future__ import annotations

from collections.abc import Sequence

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
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def offset(place: tuple[int, int]) -> int:
        number, units = place
        if number == len(lines) and units == 0:
            return len(text)
        if not 0 <= number < len(lines):
            raise ValueError(f"there is no line {number + 1}")
        before = lines[number].encode("utf-16-le", "surrogatepass")[: 2 * units]
        return starts[number] + len(before.decode("utf-16-le", "surrogatepass"))

    parts: list[str] = []
    last = 0
    for start, end, new in sorted((offset(edit.start), offset(edit.end), edit.text) for edit in edits):
        if start < last or end < start:
            raise ValueError("two edits overlap")
        parts += [text[last:start], new]
        last = end
    return "".join([*parts, text[last:]])
