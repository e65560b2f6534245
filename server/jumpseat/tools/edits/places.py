"""Find the places of a text that a passage can mean, and the slips that each of them assumes."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Final

from msgspec import Struct

from jumpseat.tools.edits.reading import Reading, is_break, is_word, plain_blanks, read, skeleton, split_breaks
from jumpseat.tools.edits.slips import ENTITIES, ESCAPES, NONE, QUOTES, REASONS, Slip

MOST_PLACES: Final = 100
"""Limit of the places that are returned; a passage with more places is ambiguous anyway."""
MOST_COMPARED: Final = 1_000_000
"""Limit of the characters that are compared, so that a short passage in a large text takes no minutes."""


class TooManyPlacesError(Exception):
    """A passage has too many places to compare them."""


VISIBLE: Final = frozenset(REASONS) - ESCAPES - ENTITIES - QUOTES


class Place(Struct, frozen=True):
    """A place of a text that differs from the passage by ``slips`` alone.

    ``start`` and ``end`` are its offsets in the text. They include the indentation of the first line, if the place
    begins with its line, and the blanks after the last one, if it ends with its line.
    """

    start: int
    end: int
    slips: frozenset[Slip]


class Passages:
    """A text in which passages are searched for; ``encodings`` are decoded in both."""

    def __init__(self, text: str, encodings: frozenset[Slip] = NONE) -> None:
        self.text = text
        self._slips = VISIBLE | encodings
        lines = skeleton(text, encodings).split("\n")
        self._visible = "".join(lines)
        self._offsets = list(accumulate(map(len, lines), initial=0))
        self._read: tuple[int, int, Reading] = -1, -1, Reading([], [], [""])
        self._starts = list(accumulate((len(line) + 1 for line in text.split("\n")), initial=0))

    def find(self, passage: str, where: Callable[[int, int], bool] | None = None) -> list[Place]:
        """Return the best places of ``passage``: those for which no other one assumes a part of their slips.

        ``where`` decides by the offsets of a place whether it counts.

        Raises:
            TooManyPlacesError: the places cannot be compared in a reasonable time.
        """
        found = self.find_all(passage)
        if where is not None:
            if len(found) >= MOST_PLACES:
                raise TooManyPlacesError
            found = [place for place in found if where(place.start, place.end)]
        return [place for place in found if not any(other.slips < place.slips for other in found)]

    def find_all(self, passage: str) -> list[Place]:
        """Return the first :data:`MOST_PLACES` places of ``passage``, in their order.

        Raises:
            TooManyPlacesError: the places cannot be compared in a reasonable time.
        """
        wanted = read(passage, self._slips)
        needle = "".join(wanted.keys)
        found: list[Place] = []
        offset = self._visible.find(needle) if needle else -1
        compared = 0
        while offset >= 0 and len(found) < MOST_PLACES:
            if compared > MOST_COMPARED:
                raise TooManyPlacesError
            first, last = self._lines_of(offset, len(needle))
            # Reading lines takes longest, and is done once for places in the same lines.
            compared += len(passage) + 100 + (self._starts[last + 1] - self._starts[first]) // 8
            place = self._place(offset, first, last, wanted)
            if place is not None:
                found.append(place)
            offset = self._visible.find(needle, offset + 1)
        return found

    def _lines_of(self, offset: int, length: int) -> tuple[int, int]:
        return bisect_right(self._offsets, offset) - 1, bisect_right(self._offsets, offset + length - 1) - 1

    def _place(self, offset: int, first: int, last: int, wanted: Reading) -> Place | None:
        line_start = self._starts[first]
        if self._read[:2] != (first, last):
            self._read = first, last, read(self.text[line_start : self._starts[last + 1]], self._slips)
        lines = self._read[2]
        begin = _index_at(lines.keys, offset - self._offsets[first])
        end = None if begin is None else begin + len(wanted.keys)
        if begin is None or end is None or lines.keys[begin:end] != wanted.keys:
            return None
        there = lines.part(begin, end)
        whole_start, whole_end = begin == 0, end == len(lines.keys)
        escapes = "escaped line ends" in self._slips
        if not (whole_start or _starts_a_word(lines, begin, wanted, escapes=escapes)):
            return None
        if not (whole_end or _ends_a_word(lines, end, wanted, escapes=escapes)):
            return None
        slips = compare(wanted, there, escapes=escapes)
        if slips is None:
            return None
        slips |= _slips_around(wanted, there, whole_start=whole_start, whole_end=whole_end)
        start = line_start + sum(map(len, lines.raws[:begin])) + sum(map(len, lines.gaps[: begin + 1]))
        size = sum(map(len, there.raws)) + sum(map(len, there.gaps[1:-1]))
        lead = len(there.gaps[0]) if whole_start else 0
        trailing = len(split_breaks(there.gaps[-1])[0]) if whole_end else 0
        return Place(start - lead, start + size + trailing, frozenset(slips))


def _index_at(keys: Sequence[str], length: int) -> int | None:
    """Return the index of the key that ``length`` characters of keys precede."""
    index = 0
    while length > 0 and index < len(keys):
        length -= len(keys[index])
        index += 1
    return index if length == 0 else None


def _starts_a_word(lines: Reading, begin: int, wanted: Reading, *, escapes: bool) -> bool:
    """Return whether a place may begin within its line: not within a word, and not if the passage has the line."""
    if lines.gaps[begin]:
        return not is_break(wanted.gaps[0], escapes=escapes)
    return not wanted.gaps[0] and not (is_word(lines.keys[begin - 1]) and is_word(lines.keys[begin]))


def _ends_a_word(lines: Reading, end: int, wanted: Reading, *, escapes: bool) -> bool:
    if lines.gaps[end]:
        return not is_break(wanted.gaps[-1], escapes=escapes)
    return not wanted.gaps[-1] and not (is_word(lines.keys[end - 1]) and is_word(lines.keys[end]))


def compare(wanted: Reading, there: Reading, *, escapes: bool) -> set[Slip] | None:
    """Return the slips by which two readings with the same keys differ, the gaps around them excluded.

    Returns:
        ``None`` if they differ by more than slips.
    """
    slips: set[Slip] = set()
    for raw, other in zip(wanted.raws, there.raws, strict=True):
        if raw != other:
            slips.add(_slip_of_letter(raw, other))
    for index in range(1, len(wanted.keys)):
        gap, other = wanted.gaps[index], there.gaps[index]
        if gap != other:
            beside = not (is_word(wanted.keys[index - 1]) and is_word(wanted.keys[index]))
            found = _slips_of_gap(gap, other, beside_punctuation=beside, escapes=escapes)
            if found is None:
                return None
            slips |= found
    return slips


def _slip_of_letter(raw: str, other: str) -> Slip:
    for written in (raw, other):
        if len(written) > 1 and written[0] in "\\&":
            escape: Slip = "escaped letters" if written[1] in "uU" else "escaped quotes"
            return escape if written[0] == "\\" else "entities"
    if {raw, other} == {"'", '"'}:
        return "other quotes"
    same = unicodedata.normalize("NFC", raw) == unicodedata.normalize("NFC", other)
    return "composed letters" if same else "typographic characters"


def _slips_of_gap(gap: str, other: str, *, beside_punctuation: bool, escapes: bool) -> set[Slip] | None:
    breaks, other_breaks = is_break(gap, escapes=escapes), is_break(other, escapes=escapes)
    if breaks != other_breaks:
        return None
    if breaks:
        return _slips_of_breaks(split_breaks(gap, escapes=escapes), split_breaks(other, escapes=escapes))
    if "\\t" in gap or "\\t" in other:
        return {"escaped line ends", "runs of blanks"}
    blanks, other_blanks = plain_blanks(gap), plain_blanks(other)
    encoded: set[Slip] = {"entities"} if "&" in gap + other else set()
    if blanks == other_blanks:
        return {"special spaces", *encoded}
    slips: set[Slip] = encoded if (blanks, other_blanks) == (gap, other) else {"special spaces"}
    if blanks and other_blanks:
        slips.add("runs of blanks")
    elif beside_punctuation:
        slips.add("blanks beside punctuation")
    else:
        return None
    return slips


def _slips_of_breaks(gap: list[str], other: list[str]) -> set[Slip]:
    slips: set[Slip] = set()
    if any("\\" in piece for piece in gap) != any("\\" in piece for piece in other):
        slips.add("escaped line ends")
    elif set(gap[1::2]) != set(other[1::2]):
        slips.add("line ends")
    if gap[0] != other[0]:
        slips.add("trailing blanks")
    if gap[2:-1:2] != other[2:-1:2]:
        slips.add("blank lines")
    if gap[-1] != other[-1]:
        slips.add("indentation")
    return slips


def _slips_around(wanted: Reading, there: Reading, *, whole_start: bool, whole_end: bool) -> set[Slip]:
    """Return the slips in the gaps before and after a passage."""
    slips: set[Slip] = set()
    before, after = split_breaks(wanted.gaps[0], escapes=True), split_breaks(wanted.gaps[-1], escapes=True)
    if len(before) > 1 or len(after) > 3:
        slips.add("blank lines")
    if "\\" in wanted.gaps[0] + wanted.gaps[-1]:
        slips.add("escaped line ends")
    if whole_start and before[-1] != there.gaps[0]:
        slips.add("indentation")
    if after[0] != split_breaks(there.gaps[-1])[0]:
        slips.add("trailing blanks")
    if not (whole_start and whole_end):
        slips.add("part of a line")
    return slips
