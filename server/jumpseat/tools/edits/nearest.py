"""Show the model which text of a file is most like a passage that the file does not have."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from difflib import SequenceMatcher
from heapq import nlargest
from typing import Final

MOST_SHOWN: Final = 24
"""Limit of the lines that are shown."""
MOST_COLUMNS: Final = 200
MOST_COMPARED: Final = 200
"""Limit of the lines of a passage that are looked for."""
MOST_POSTINGS: Final = 200
"""A word on more lines says little about the place."""
MOST_READ: Final = 1000
"""Limit of the lines at likely places that are compared letter by letter."""

_WORD: Final = re.compile(r"\w+")


def nearest(text: str, passage: str) -> str:
    """Return the lines of ``text`` that are most like ``passage``, numbered, with the differences.

    Lines with ``-`` are those of the text, lines with ``+`` those of the passage. Takes a time linear in the text.

    Returns:
        An empty string if the text has nothing in common with the passage.
    """
    lines = text.split("\n")
    wanted = passage.strip("\r\n").split("\n")[:MOST_COMPARED]
    first = _best_line(lines, wanted, _words)
    if first is None:
        first = _best_line(lines, wanted, _parts)
    if first is None:
        return ""
    end = first + len(wanted)
    shown = [
        *(f"  {index + 1}. {lines[index].rstrip()}" for index in range(max(0, first - 1), first)),
        *_difference([line.rstrip() for line in lines[first:end]], [line.rstrip() for line in wanted], first + 1),
        *(f"  {index + 1}. {lines[index].rstrip()}" for index in range(end, min(end + 1, len(lines)))),
    ]
    return "\n".join(_shortened(shown))


def _best_line(lines: list[str], wanted: list[str], features: Callable[[str], set[str]]) -> int | None:
    """Return the index of the line where the passage would begin, judged by the features that lines share."""
    places: dict[str, list[int]] = defaultdict(list)
    for index, line in enumerate(wanted):
        for word in features(line):
            places[word].append(index)
    postings: dict[str, list[int]] = defaultdict(list)
    for number, line in enumerate(lines):
        for word in places.keys() & features(line):
            postings[word].append(number)
    votes: dict[int, float] = defaultdict(float)
    rarest = min(map(len, postings.values()), default=0)
    for word, numbers in postings.items():
        if len(numbers) <= max(MOST_POSTINGS, rarest):
            weight = len(word) / (len(numbers) * len(places[word]))
            for number in numbers[:MOST_POSTINGS]:
                for index in places[word]:
                    votes[number - index] += weight
    if not votes:
        return None
    # A missing or additional line moves the lines after it.
    shifts = (-1, 0, 0, 1) if len(wanted) > 1 else (0,)
    scores = {first: sum(votes.get(first + shift, 0) for shift in shifts) for first in votes}
    likely = nlargest(MOST_READ // len(wanted), scores, key=lambda first: (scores[first], -first))
    parts = _parts_of_all(wanted)

    def likeness(first: int) -> float:
        here = _parts_of_all(lines[max(0, first) : first + len(wanted)])
        # Places of passages without parts are as likely as their words.
        return scores[first] * (0.05 + len(parts & here) / max(1, len(parts) + len(here)))

    return min(max(0, max(likely, key=likeness)), len(lines) - 1)


def _words(line: str) -> set[str]:
    """Return the words of a line, and the line itself, also in small letters."""
    small = line.lower()
    return {*_WORD.findall(line), *_WORD.findall(small), line.strip(), small.strip()} - {""}


def _parts(line: str) -> set[str]:
    """Return the parts of a line with three characters, in small letters."""
    line = line.strip().lower()
    return {line[start : start + 3] for start in range(len(line) - 2)}


def _parts_of_all(lines: Iterable[str]) -> set[str]:
    return {part for line in lines for part in _parts(line[:MOST_COLUMNS])}


def _difference(here: list[str], wanted: list[str], number: int) -> list[str]:
    """Compare lines of the text, of which the first has this number, with those of the passage."""
    shown: list[str] = []
    matcher = SequenceMatcher(None, here, wanted, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        mark = " " if tag == "equal" else "-"
        shown += [f"{mark} {number + i}. {here[i]}" for i in range(i1, i2)]
        if tag in ("replace", "insert"):
            width = len(str(number + i1)) + 1
            shown += [f"+ {' ' * width} {wanted[j]}" for j in range(j1, j2)]
    return shown


def _shortened(shown: list[str]) -> list[str]:
    """Leave out equal lines that are far from a difference, then what exceeds the limits."""
    near = [
        line if any(other[0] != " " for other in shown[max(0, index - 3) : index + 4]) else None
        for index, line in enumerate(shown)
    ]
    kept: list[str] = []
    for line in near if any(near) else shown:
        if line is not None:
            kept.append(line if len(line) <= MOST_COLUMNS else line[: MOST_COLUMNS - 1] + "…")
        elif kept and kept[-1] != "  ...":
            kept.append("  ...")
    return kept if len(kept) <= MOST_SHOWN else [*kept[: MOST_SHOWN - 1], "  ..."]
