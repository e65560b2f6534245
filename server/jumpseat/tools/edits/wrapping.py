"""Take away what models copy with a passage: fences, marks and numbers around it or before its lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final, TypeAlias

from jumpseat.tools.edits.slips import Slip

OF_LINES: Final[frozenset[Slip]] = frozenset(
    {"code fence", "search markers", "line numbers", "patch marks", "quote marks", "list mark"}
)
"""What is around or before whole lines, and never around a part of one."""

MOST_READINGS: Final = 8
"""Limit of the readings of a passage to which another step is applied."""

SURE_LETTERS: Final = 3
"""Letters and digits that a passage has at least if a mark of a patch or a list may be taken away."""

_Step: TypeAlias = Callable[[str, str], tuple[str, str] | None]
_Take: TypeAlias = Callable[[str], re.Match[str] | None]
"""Returns the passage and the new text without what was around them; nothing if the passage has none of it."""


def unwrapped(old: str, new: str) -> Iterator[tuple[tuple[Slip, ...], str, str]]:
    """Yield both texts of an edit as they are, then without what a model may have put around or between."""
    found: list[tuple[tuple[Slip, ...], str, str]] = [((), old, new)]
    yield found[0]
    for slip, step in _STEPS:
        # A passage may have a sign because the file has it, and be wrapped nevertheless.
        for wrapping, one_old, one_new in found[:MOST_READINGS]:
            changed = step(one_old, one_new)
            if changed is not None:
                found.append(((*wrapping, slip), *changed))
                yield found[-1]


def _around(take: _Take, take_new: _Take | None = None) -> _Step:
    """Return a step for what surrounds a passage; the last groups of the matches are the texts within."""

    def step(old: str, new: str) -> tuple[str, str] | None:
        match = take(old)
        if match is None:
            return None
        new_match = (take_new or take)(new)
        return match[match.re.groups], new if new_match is None else new_match[new_match.re.groups]

    return step


_FENCED: Final = re.compile(r"\s*(`{3,}+|~{3,}+)[^\n]*\n(.*?\n?)(?<![ \t])[ \t]*+\1\s*", re.DOTALL)
_CDATA: Final = re.compile(r"\s*<!\[CDATA\[(.*)\]\]>\s*", re.DOTALL)
_INLINE: Final = re.compile(r"`([^`\n]++)`")
_SEARCHED: Final = re.compile(r"\s*<{5,9} ?+(?:SEARCH|ORIGINAL|HEAD)?+\n(.*?\n)(?:={5,9}\s*)?", re.DOTALL)
_REPLACED: Final = re.compile(r"(?:\s*+={5,9}\n)?(.*\n|)>{5,9} ?+(?:REPLACE|UPDATED)?+\s*", re.DOTALL)


# --- marks before each line -------------------------------------------------------------------------------------

_NUMBERED: Final = re.compile(
    r"[ \t]*(?:L|line |\[)?(\d+)(\] ?:?|[.:|)\t→-]|[ \t]*[|│→]|(?= ))( ?)(.*)", re.DOTALL | re.IGNORECASE
)


def _without_numbers(old: str, new: str) -> tuple[str, str] | None:
    lines = old.split("\n")
    matches = [match for line in lines if (match := _NUMBERED.fullmatch(line)) is not None]
    given = sum(bool(line.strip()) for line in lines)
    if not matches or len(matches) != given or len({match[2].strip(" ") for match in matches}) > 1:
        return None
    numbers = [int(match[1]) for match in matches]
    if any(after != before + 1 for before, after in pairwise(numbers)):
        return None
    separator = matches[0][2].strip(" ")
    new_lines = new.split("\n")
    new_matches = [_NUMBERED.fullmatch(line) for line in new_lines]
    of_view = [match is not None and match[2].strip(" ") == separator for match in new_matches]
    given = sum(bool(line.strip()) for line in new_lines)
    if any(of_view) and (2 * sum(of_view) < given or _is_item(old, new)):
        return None
    # A blank before all lines belongs to the numbers.
    parted = all(match[3] or not match[4].strip() for match in matches)
    stripped = [
        _rest(match, parted=parted) if match is not None and numbered_line else line
        for line, match, numbered_line in zip(new_lines, new_matches, of_view, strict=True)
    ]
    old_lines = ["" if match is None else _rest(match, parted=parted) for match in map(_NUMBERED.fullmatch, lines)]
    return "\n".join(old_lines), "\n".join(stripped)


def _rest(match: re.Match[str], *, parted: bool) -> str:
    """Return a line without its number; after a tab, an arrow or a hyphen, all blanks are those of the line."""
    return match[4] if parted and match[2] not in ("\t", "→", "-") else match[3] + match[4]


def _without_patch_marks(old: str, new: str) -> tuple[str, str] | None:
    """Take away the first column of a patch: ``-`` and blanks in the passage, ``+`` and blanks in the new text."""
    mark = next((line[0] for line in old.split("\n") if line[:1] in ("-", "+")), "")
    stripped = _without_column(old, mark)
    if stripped is None or _is_sign(stripped):
        return None
    if not any(line.startswith(("+", "-")) for line in new.split("\n")):
        return stripped, new
    new_stripped = _without_column(new, "+")
    return None if new_stripped is None else (stripped, new_stripped)


def _is_sign(text: str) -> bool:
    """Return whether what looks like a mark before a text may be a sign: of a number, or of a short name."""
    return not any(map(str.isalpha, text)) or sum(map(str.isalnum, text)) < SURE_LETTERS


def _without_column(text: str, mark: str) -> str | None:
    lines = text.split("\n")
    if not mark or not any(line.startswith(mark) for line in lines):
        return None
    return "\n".join(line[1:] for line in lines) if all(line[:1] in (mark, " ", "") for line in lines) else None


_QUOTED: Final = re.compile(r"^[ \t]*+>(?: |$)", re.MULTILINE)


def _without_quote_marks(old: str, new: str) -> tuple[str, str] | None:
    if not _all_quoted(old):
        return None
    return _QUOTED.sub("", old), _QUOTED.sub("", new) if _all_quoted(new) else new


def _all_quoted(text: str) -> bool:
    lines = [line for line in text.split("\n") if line.strip()]
    return bool(lines) and all(_QUOTED.match(line) for line in lines)


_ITEM: Final = re.compile(r"([ \t]*+([-*+•]|\d{1,3}[.)])[ \t]++)(.*)", re.DOTALL)


def _without_list_mark(old: str, new: str) -> tuple[str, str] | None:
    """Take away the mark of a list before the first line, and the blanks below it before the others."""
    item, new_item = _ITEM.fullmatch(old), _ITEM.fullmatch(new)
    if item is None or not item[3].strip() or _is_sign(item[3]):
        return None
    listed = new_item is not None and _kind(new_item) == _kind(item)
    return _without_item(item), _without_item(new_item) if listed and new_item is not None else new


def _is_item(old: str, new: str) -> bool:
    """Return whether both texts are an item of a list: its other lines are as far to the right as its text."""
    item, new_item = _ITEM.fullmatch(old), _ITEM.fullmatch(new)
    if item is None or new_item is None or _kind(new_item) != _kind(item):
        return False
    blanks = " " * len(new_item[1])
    below = [line for text in (item[3], new_item[3]) for line in text.split("\n")[1:] if line.strip()]
    return bool(below) and all(line.startswith(blanks) for line in below)


def _kind(item: re.Match[str]) -> str:
    return item[2].lstrip("0123456789")


def _without_item(item: re.Match[str]) -> str:
    first, *others = item[3].split("\n")
    blanks = " " * len(item[1])
    if all(line.startswith(blanks) or not line.strip() for line in others):
        others = [line[len(blanks) :] for line in others]
    return "\n".join([first, *others])


# --- signs that stand for several -------------------------------------------------------------------------------


def _without(*signs: tuple[str, str]) -> _Step:
    """Return a step for signs that stand for two others each."""

    def step(old: str, new: str) -> tuple[str, str] | None:
        used = [(sign, meant) for sign, meant in signs if sign in old]
        for sign, meant in used:
            old, new = old.replace(sign, meant), new.replace(sign, meant)
        return (old, new) if used else None

    return step


_STEPS: Final[tuple[tuple[Slip, _Step], ...]] = (
    ("code fence", _around(_FENCED.fullmatch)),
    ("search markers", _around(_SEARCHED.fullmatch, _REPLACED.fullmatch)),
    ("CDATA", _around(_CDATA.fullmatch)),
    ("inline code", _around(_INLINE.fullmatch)),
    ("arrows", _without(("→", "->"), ("⇒", "=>"), ("≤", "<="), ("≥", ">="), ("≠", "!="))),
    ("long dashes", _without(("\u2014", "--"))),
    ("line numbers", _without_numbers),
    ("patch marks", _without_patch_marks),
    ("quote marks", _without_quote_marks),
    ("list mark", _without_list_mark),
)
