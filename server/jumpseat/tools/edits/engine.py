"""Apply edits to a text: exactly where that is possible, otherwise with the slips that models are known for.

An edit lands only where exactly one place fits. What is not certain is refused, with the nearest place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from jumpseat.tools.edits.letters import UncertainError
from jumpseat.tools.edits.merging import merge
from jumpseat.tools.edits.nearest import MOST_COLUMNS, MOST_SHOWN, nearest
from jumpseat.tools.edits.omissions import is_omission, omission
from jumpseat.tools.edits.places import MOST_PLACES, Passages, Place, TooManyPlacesError
from jumpseat.tools.edits.reading import encodings_of
from jumpseat.tools.edits.slips import ENTITIES, ESCAPES, NONE, QUOTES, Slip, listed
from jumpseat.tools.edits.wrapping import OF_LINES, unwrapped

MOST_LISTED: Final = 10
"""Limit of the places that a refusal lists."""
MAX_OVERLAPPING_CHARS: Final = 2**24
"""Limit of the characters that are compared where occurrences of a passage overlap."""
MARK: Final = "\ufeff"
"""The byte order mark, with which some programs begin a file; editors do not show it."""
SURE_LETTERS: Final = 8
"""Letters that a text has at least if it is found in place of the passage: shorter ones are found anywhere."""


Where: TypeAlias = Callable[[int, int], bool]
"""Decides by the first and the last offset of a place whether an edit may be made there."""


class Edit(Struct, frozen=True):
    """Replace ``old`` by ``new``: at its only place, or everywhere.

    ``where`` restricts the places, and makes them whole lines. ``old_name`` and ``new_name`` are the names of both
    texts in what the model reads.
    """

    old: str
    new: str
    everywhere: bool = False
    where: Where | None = None
    old_name: str = "old_str"
    new_name: str = "new_str"

    @property
    def inner_name(self) -> str:
        """The name of the old text within a sentence."""
        return self.old_name[0].lower() + self.old_name[1:]


class Landed(Struct, frozen=True):
    """The text after an edit; ``notes`` tell the model what differed from its edit."""

    text: str
    notes: tuple[str, ...] = ()


class Refused(Struct, frozen=True):
    """The reason why an edit was not made, for the model."""

    reason: str


def apply_edits(text: str, edits: Sequence[Edit], name: str) -> Landed | Refused:
    """Apply all edits, one after the other, or none; ``name`` is the name of the file."""
    notes: list[str] = []
    for number, edit in enumerate(edits, 1):
        result = apply_edit(text, edit, name)
        label = f"Edit {number} of {len(edits)}: " if len(edits) > 1 else ""
        if isinstance(result, Refused):
            none = "\nNone of the edits was made." if label else ""
            return Refused(label + result.reason + none)
        text = result.text
        notes += (label + note for note in result.notes)
    return Landed(text, tuple(notes))


def apply_edit(text: str, edit: Edit, name: str) -> Landed | Refused:
    """Apply one edit to the text of the file ``name``."""
    if not edit.old:
        return Refused("old_str is empty. Give the exact text to replace; use create for a new file.")
    if edit.old == edit.new:
        return Refused("old_str and new_str are the same: nothing to change.")
    return try_edit(text, edit, name) or refusal_of_missing(text, edit, name)


def try_edit(text: str, edit: Edit, name: str) -> Landed | Refused | None:
    """Apply one edit to the text of the file ``name``; return ``None`` if no place fits."""
    if text.startswith(MARK) and edit.old.lstrip(MARK) not in ("", edit.new.lstrip(MARK)):
        return _behind_mark(text, edit, name)
    try:
        result = _apply_exactly(text, edit, name) or _apply_leniently(text, edit, name)
    except TooManyPlacesError:
        return Refused(
            f"{edit.old_name} fits too many places of {name}. Add surrounding lines to it so that it occurs once."
        )
    left_out = omission(edit.old, edit.new) if isinstance(result, Landed) else None
    if left_out is None:
        return result
    return Refused(
        f"{edit.new_name} leaves out text ({left_out!r}), which would delete it from {name}. Write out all of it,"
        f" or replace a smaller passage. This is the nearest text:\n{nearest(text, edit.old)}"
    )


def _behind_mark(text: str, edit: Edit, name: str) -> Landed | Refused | None:
    """Apply an edit to a text with a byte order mark, which stays whether or not the edit has it."""
    where = None if edit.where is None else _shifted(edit.where)
    bare = replace(edit, old=edit.old.lstrip(MARK), new=edit.new.lstrip(MARK), where=where)
    result = try_edit(text[len(MARK) :], bare, name)
    return replace(result, text=MARK + result.text) if isinstance(result, Landed) else result


def _shifted(where: Where) -> Where:
    return lambda start, end: where(start + len(MARK) if start else 0, end + len(MARK))


# --- exact edits ------------------------------------------------------------------------------------------------


def _apply_exactly(text: str, edit: Edit, name: str) -> Landed | Refused | None:
    for old in dict.fromkeys((edit.old, _with_line_ends(edit.old, "\n"), _with_line_ends(edit.old, "\r\n"))):
        # One is enough to know that there are others to replace.
        first = text.find(old) if edit.everywhere else -1
        starts = [first] if first >= 0 and edit.where is None else _occurrences(text, old)
        if (where := edit.where) is not None:
            starts = [start for start in starts if where(start, start + len(old))]
        if not starts:
            continue
        if edit.everywhere:
            new = _with_line_ends(edit.new, _line_end(text, starts[0], old))
            return Landed(text.replace(old, new), (f"{edit.old_name} was replaced {_times(text.count(old))}.",))
        if len(starts) > 1:
            return _ambiguous(text, edit, name, starts, "occurs")
        return _apply_at(text, starts[0], old, edit, name)
    return None


def _apply_at(text: str, start: int, old: str, edit: Edit, name: str) -> Landed | Refused:
    end = start + len(old)
    new = _with_line_ends(edit.new, _line_end(text, start, old))
    if _is_there(text, start, old, new):
        return _already(text, edit, text.find(new, max(0, start - len(new))), new, name)
    line_start = text.rfind("\n", 0, start) + 1
    blanks = text[line_start:start]
    whole_start = not blanks.strip(" \t") and old[0] not in "\r\n" and old.strip()
    core, new_core = old.rstrip("\r\n"), new.rstrip("\r\n")
    rest = text[start + len(core) :].partition("\n")[0].rstrip("\r")
    several = "\n" in new_core.strip()
    slips: set[Slip] = set()
    if whole_start and blanks and (several or "\n" in core or new.startswith(blanks)):
        # The other lines may lack the indentation, too.
        slips.add("indentation")
    if whole_start and rest and not rest.strip(" \t") and several:
        slips.add("trailing blanks")
    if slips:
        blanks_after = len(rest) if "trailing blanks" in slips else 0
        place = Place(line_start, start + len(core) + blanks_after, frozenset(slips))
        landed = _merged(text, edit, place, core, new_core, name, ())
        if isinstance(landed, Refused):
            return landed
        head = landed.text[: len(landed.text) - len(text) + place.end]
        tail = new[len(new_core) :] or old[len(core) :]
        return Landed(head + tail + text[max(end, place.end) :], landed.notes)
    return Landed(text[:start] + _between_lines(old, new) + text[end:])


def _between_lines(old: str, new: str) -> str:
    """Return ``new`` with the line breaks around ``old``, if it has none: lines replace lines, and join none."""
    content = old.strip("\r\n")
    if not new.strip() or content.strip() == new.strip():
        return new
    start = old.index(content)
    before, after = old[:start], old[start + len(content) :]
    new_after = new[len(new.rstrip("\r\n")) :]
    if before and new[0] not in "\r\n":
        # The new text has none of the blank lines before, so that it hardly means to remove those after.
        return before + (new.rstrip("\r\n") + after if len(new_after) < len(after) else new)
    return new if new_after else new + after


def _is_there(text: str, start: int, old: str, new: str) -> bool:
    """Return whether ``new``, which adds whole lines to ``old``, is there already, with ``old`` in it."""
    if "\n" not in new.strip("\n") or not re.search(r"\w", new.replace(old, "", 1)):
        return False
    return any(
        text.startswith(new, start - offset)
        and (start == offset or text[start - offset - 1] == "\n" or new[0] == "\n")
        and (text[start - offset + len(new) :][:1] in ("", "\r", "\n") or new[-1] == "\n")
        for offset in _occurrences(new, old)
        if offset <= start
    )


def _occurrences(text: str, piece: str) -> list[int]:
    """Return the offsets of ``piece``, overlapping occurrences included: each would be a different edit.

    Raises:
        TooManyPlacesError: the occurrences overlap so much that the search would take the square of the length.
    """
    starts: list[int] = []
    start = text.find(piece)
    while start >= 0:
        starts.append(start)
        if len(starts) * len(piece) > MAX_OVERLAPPING_CHARS + len(text):
            raise TooManyPlacesError
        start = text.find(piece, start + 1)
    return starts


def _line_end(text: str, start: int, old: str) -> str | None:
    """Return the line end of a passage, else of the text; ``None`` if the text has both or none."""
    for sample in (old, text[start:][:4096], text):
        breaks, pairs = sample.count("\n"), sample.count("\r\n")
        if breaks and pairs in (0, breaks):
            return "\r\n" if pairs else "\n"
    return None


def _with_line_ends(text: str, line_end: str | None) -> str:
    if line_end is None or "\n" not in text:
        return text
    text = text.replace("\r\n", "\n")
    return text if line_end == "\n" else text.replace("\n", line_end)


# --- edits with slips -------------------------------------------------------------------------------------------


def _apply_leniently(text: str, edit: Edit, name: str) -> Landed | Refused | None:
    found = encodings_of(edit.old) | encodings_of(text)
    searched = {NONE: Passages(text)}
    for wrapping, old, new in unwrapped(edit.old, edit.new):
        for encodings in (NONE, ESCAPES, ENTITIES, ESCAPES | ENTITIES, QUOTES):
            if not encodings <= found:
                continue
            if encodings not in searched:
                searched[encodings] = Passages(text, encodings)
            passages = searched[encodings]
            places = passages.find_all(old) if edit.everywhere else passages.find(old, edit.where)
            if not OF_LINES.isdisjoint(wrapping) or edit.where is not None:
                places = [place for place in places if "part of a line" not in place.slips]
            if not places:
                continue
            if edit.everywhere:
                return _merged_everywhere(text, edit, places, old, new, name, wrapping)
            if len(places) > 1:
                return _ambiguous(text, edit, name, [place.start for place in places], "fits")
            return _merged(text, edit, places[0], old, new, name, wrapping)
    return None


def _merged(
    text: str, edit: Edit, place: Place, old: str, new: str, name: str, wrapping: tuple[Slip, ...]
) -> Landed | Refused:
    slips = listed({*place.slips, *wrapping})
    lines = _line_range(text, place.start, place.end)
    there = text.find(new.strip("\r\n"))
    if 0 <= there <= place.start and there + len(new.strip("\r\n")) >= place.end and len(new) > len(old):
        return _already(text, edit, there, new, name)
    try:
        start, end, merged = merge(text, place, old, new)
    except UncertainError as error:
        return Refused(
            f"{edit.old_name} fits {lines} of {name} but for {slips}, and {error}. Copy the text exactly:\n"
            + _numbered(text, place.start, place.end)
        )
    passage = text[start:end]
    if merged == passage or _is_there(text, start, passage, merged):
        return _already(text, edit, start, merged, name)
    return Landed(text[:start] + merged + text[end:], (f"{edit.old_name} matched {lines} but for {slips}.",))


def _merged_everywhere(
    text: str, edit: Edit, places: Sequence[Place], old: str, new: str, name: str, wrapping: tuple[Slip, ...]
) -> Landed | Refused:
    if len(places) >= MOST_PLACES:
        raise TooManyPlacesError
    slips: set[Slip] = {*wrapping}
    for place in places:
        slips |= place.slips
    count, after = 0, len(text)
    for place in reversed(places):
        if place.end > after:
            continue
        result = _merged(text, edit, place, old, new, name, wrapping)
        if isinstance(result, Refused):
            return result
        text, after = result.text, place.start
        count += 1
    return Landed(text, (f"{edit.old_name} was replaced {_times(count)}; it matched but for {listed(slips)}.",))


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


# --- refusals ---------------------------------------------------------------------------------------------------


def refusal_of_missing(text: str, edit: Edit, name: str) -> Refused:
    """Return the refusal of an edit for which no place fits."""
    try:
        there = [place for place in Passages(text).find(edit.new) if "part of a line" not in place.slips]
    except TooManyPlacesError:
        there = []
    if len(there) == 1 and len(re.findall(r"\w", edit.new)) >= SURE_LETTERS:
        return _already(text, edit, there[0].start, text[there[0].start : there[0].end], name)
    reason = f"{edit.old_name} was not found in {name}."
    if any(is_omission(line) for line in edit.old.split("\n")):
        reason += " It leaves out text, and must be complete."
    shown = nearest(text, edit.old)
    if not shown:
        return Refused(f"{reason} View the file and copy the text exactly, including white space.")
    return Refused(
        f"{reason} This is the nearest text; the lines with - are in the file, those with + in {edit.inner_name}:\n"
        + shown
    )


def _ambiguous(text: str, edit: Edit, name: str, starts: Sequence[int], fits: str) -> Refused:
    numbers = [_line_of(text, start) for start in starts[:MOST_LISTED]]
    more = ", ..." if len(starts) > MOST_LISTED else ""
    places = f"occurs {len(starts)} times in {name}" if fits == "occurs" else f"fits {len(starts)} places of {name}"
    shown = [_numbered(text, start, start) for start in starts[:MOST_LISTED]]
    return Refused(
        f"{edit.old_name} {places} (lines {', '.join(map(str, numbers))}{more}). "
        "Add surrounding lines to it so that it occurs once.\n" + "\n".join(shown)
    )


def _already(text: str, edit: Edit, start: int, new: str, name: str) -> Refused:
    lines = _line_range(text, start, start + len(new.rstrip("\r\n")))
    return Refused(f"{edit.new_name} is in {name} already ({lines}): nothing to change.")


def _line_of(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def _line_range(text: str, start: int, end: int) -> str:
    first, last = _line_of(text, start), _line_of(text, max(start, end - 1))
    return f"line {first}" if first == last else f"lines {first}-{last}"


def _numbered(text: str, start: int, end: int) -> str:
    """Return the lines from ``start`` to ``end``, as ``view`` shows them."""
    first = _line_of(text, start)
    line_end = text.find("\n", max(start, end - 1))
    lines = text[text.rfind("\n", 0, start) + 1 : line_end if line_end >= 0 else len(text)].split("\n")
    shown = [
        f"{number}. {line.rstrip(chr(13))[:MOST_COLUMNS]}" for number, line in enumerate(lines[:MOST_SHOWN], first)
    ]
    return "\n".join(shown if len(lines) <= MOST_SHOWN else [*shown, "..."])
