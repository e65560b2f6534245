"""Texts as lines of words and signs, and what two of them have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final

from msgspec import Struct, field

from jumpseat.tools.edits.reading import Reading, is_break, is_word, plain_blanks, split_breaks

MAX_COMPARISONS: Final = 1_000_000
"""Product of the numbers of lines, or of words, above which two texts are not compared in detail."""


class Token(Struct, frozen=True):
    """A word or a sign. ``before`` are the blanks before it, ``letters`` its characters as they are written."""

    before: str
    key: str
    letters: tuple[str, ...]
    raw: str


class Line(Struct):
    """A line that is not blank, with the blank lines before it."""

    blank_lines: list[str] = field(default_factory=list[str])
    indentation: str = ""
    tokens: list[Token] = field(default_factory=list[Token])
    trailing: str = ""
    end: str = ""

    @property
    def text(self) -> str:
        return "".join(token.before + token.raw for token in self.tokens)


class Lines(Struct):
    """A text as lines; ``tail`` are the blank lines after the last one, its own line break included."""

    lines: list[Line]
    tail: list[str]


def to_lines(reading: Reading, guide: Reading, *, escapes: bool) -> Lines:
    """Divide a reading at the word boundaries and line breaks of ``guide``, which has the same keys."""
    lines: list[Line] = []
    start = 0
    count = len(guide.keys)
    for index in range(count):
        gap = guide.gaps[index]
        if index == 0 or is_break(gap, escapes=escapes):
            pieces = split_breaks(reading.gaps[index], escapes=escapes)
            if index:
                lines[-1].trailing, lines[-1].end = pieces[0], pieces[1] if len(pieces) > 1 else ""
                pieces = pieces[2:]
            lines.append(Line(_joined(pieces), pieces[-1]))
        if (
            index + 1 == count
            or guide.gaps[index + 1]
            or not (is_word(guide.keys[index]) and is_word(guide.keys[index + 1]))
        ):
            lines[-1].tokens.append(_token(reading, start, index + 1, first=not lines[-1].tokens))
            start = index + 1
    trailing, *rest = split_breaks(reading.gaps[-1], escapes=escapes)
    if lines:
        lines[-1].trailing = trailing
    return Lines(lines, rest[::2])


def _joined(pieces: Sequence[str]) -> list[str]:
    """Return the blank lines of a gap with their ends."""
    return [blanks + end for blanks, end in zip(pieces[::2], pieces[1::2], strict=False)]


def _token(reading: Reading, start: int, end: int, *, first: bool) -> Token:
    # Characters without width may be in a word.
    letters = [reading.raws[start]]
    for index in range(start + 1, end):
        letters += (reading.gaps[index], reading.raws[index])
    before = "" if first else reading.gaps[start]
    return Token(before, "".join(reading.keys[start:end]), tuple(letters), "".join(letters))


def plain_indentation(line: Line) -> str:
    return plain_blanks(line.indentation)


def blanks_of(blank_line: str) -> str:
    return split_breaks(blank_line, escapes=True)[0]


def opcodes(old: Sequence[object], new: Sequence[object]) -> Iterator[tuple[str, int, int, int, int]]:
    """Compare two sequences, as ``SequenceMatcher`` does; those that are too long only at both ends."""
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    middle, new_middle = old[head : len(old) - tail], new[head : len(new) - tail]
    if head:
        yield "equal", 0, head, 0, head
    if len(middle) * len(new_middle) > MAX_COMPARISONS:
        yield "replace", head, head + len(middle), head, head + len(new_middle)
    elif middle or new_middle:
        matcher = SequenceMatcher[object](None, middle, new_middle, autojunk=False)
        for tag, i1, i2, j1, j2 in matcher.get_opcodes():
            yield tag, i1 + head, i2 + head, j1 + head, j2 + head
    if tail:
        yield "equal", len(old) - tail, len(old), len(new) - tail, len(new)


def similar_lines(
    old: Sequence[Line], new: Sequence[Line], wanted: range, given: range
) -> Iterator[tuple[int, int]]:
    """Pair lines that have half of their words in common, in their order."""
    bags = {i: Counter(token.key for token in old[i].tokens) for i in wanted}
    first = wanted.start
    for j in given:
        bag = Counter(token.key for token in new[j].tokens)
        best, best_share = None, 0.5
        for i in range(first, wanted.stop):
            share = 2 * (bag & bags[i]).total() / (bag.total() + bags[i].total())
            if share >= best_share and (best is None or share > best_share):
                best, best_share = i, share
        if best is not None:
            yield best, j
            first = best + 1
