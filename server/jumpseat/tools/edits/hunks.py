"""Apply the hunks of a patch to a text, in their order: each where the engine finds exactly one place for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import unescape
from itertools import accumulate
from typing import Final, TypeAlias

from jumpseat.tools.edits.engine import Edit, Landed, Refused, Where, refusal_of_missing, try_edit
from jumpseat.tools.edits.nearest import nearest
from jumpseat.tools.edits.patches import Hunk
from jumpseat.tools.edits.slips import Slip

SURE_LINES: Final = 2
"""Lines with words that a hunk has at least if it may lie outside of the block that its context names."""

_CLOSING: Final = (")", "]", "}", "{")

Span: TypeAlias = tuple[int, int]


def apply_hunks(text: str, hunks: Sequence[Hunk], name: str) -> Landed | Refused:
    """Apply all hunks to the text of the file ``name``, or none."""
    line_end = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    # Hunks are whole lines, and so is the text as long as they are applied.
    ends = not text or text.endswith("\n")
    text = text if ends else text + line_end
    notes: list[str] = []
    cursor = 0
    for number, hunk in enumerate(hunks, 1):
        if not hunk.changes:
            continue
        result = _apply(text, hunk, name, f"Hunk {number}" if len(hunks) > 1 else "The hunk", cursor)
        if isinstance(result, Refused):
            return result
        cursor = _end_of_change(text, result.text)
        text = result.text
        notes += result.notes
    return Landed(text if ends else text.removesuffix("\n").removesuffix("\r"), tuple(notes))


def _apply(text: str, hunk: Hunk, name: str, label: str, cursor: int) -> Landed | Refused:
    for slip, encoded in _ENCODINGS:
        decoded = _decoded(text, hunk, encoded)
        if decoded is not None:
            result = _apply(text, decoded, name, label, cursor)
            if isinstance(result, Landed):
                return Landed(result.text, (f"{label} matched but for {slip}.", *result.notes))
    scopes = _scopes(text, hunk.contexts)
    if not any(line.strip() for line in hunk.lines if not line.startswith("+")):
        return _insert(text, hunk, scopes, name, label)
    for where, note in _places(text, hunk, scopes, cursor):
        for old, new in _readings(hunk):
            edit = Edit(old, new, where=where, old_name=label, new_name=f"The new text of {label.lower()}")
            result = try_edit(text, edit, name)
            if isinstance(result, Landed) and note:
                return Landed(result.text, (*result.notes, f"{label} {note} {hunk.contexts[-1]!r}."))
            if result is not None:
                return result
    old, new = next(_readings(hunk))
    if scopes and hunk.contexts:
        return _missing_there(text, old, scopes, hunk.contexts[-1], name, label)
    return refusal_of_missing(
        text, Edit(old, new, old_name=label, new_name=f"The new text of {label.lower()}"), name
    )


_ENCODINGS: Final[tuple[tuple[Slip, re.Pattern[str]], ...]] = (
    ("entities", re.compile(r"&(?:quot|apos|amp|lt|gt|#34|#39);")),
    ("escaped quotes", re.compile(r"\\[\"']")),
)


def _decoded(text: str, hunk: Hunk, encoded: re.Pattern[str]) -> Hunk | None:
    """Return a hunk without an encoding that its lines have and those of the text have not, if it has one.

    The engine would take the unchanged lines as new text if the new lines are not encoded.
    """
    old = [line for line in hunk.lines if not line.startswith("+")]
    lines = [line[1:].strip() for line in old if encoded.search(line)]
    if not lines or any(line in text for line in lines):
        return None
    characters = {_character(found) for line in lines for found in encoded.findall(line)} - {"&"}
    added = encoded.sub("", "\n".join(line for line in hunk.lines if line.startswith("+")))
    both = not any(character in added for character in characters)
    return Hunk(
        tuple(
            encoded.sub(lambda match: _character(match[0]), line) if both or not line.startswith("+") else line
            for line in hunk.lines
        ),
        hunk.contexts,
        hunk.at_end,
    )


def _character(encoded: str) -> str:
    return unescape(encoded) if encoded[0] == "&" else encoded[1:]


def _readings(hunk: Hunk) -> Iterator[tuple[str, str]]:
    """Yield the text of a hunk before and after; lines without a mark are of both.

    If there are some, the first blank of the others may be of the file, too.
    """
    if any(line and line[0] not in " +-" for line in hunk.lines):
        yield _sides(hunk, "")
    yield _sides(hunk, " ")


def _sides(hunk: Hunk, mark: str) -> tuple[str, str]:
    old = [line[1:] if line.startswith("-") else line.removeprefix(mark) for line in hunk.lines if line[:1] != "+"]
    new = [line[1:] if line.startswith("+") else line.removeprefix(mark) for line in hunk.lines if line[:1] != "-"]
    return "".join(f"{line}\n" for line in old), "".join(f"{line}\n" for line in new)


def _places(text: str, hunk: Hunk, scopes: list[Span], cursor: int) -> Iterator[tuple[Where, str]]:
    """Yield where a hunk may be, the narrowest choice first, each with what the model should know about it."""

    def line(start: int, _end: int) -> bool:
        return start == 0 or text[start - 1] == "\n"

    def below(start: int, end: int) -> bool:
        return line(start, end) and start >= cursor

    def inside(start: int, end: int) -> bool:
        return line(start, end) and any(first <= start <= last for first, last in scopes)

    if hunk.at_end:
        yield lambda start, end: line(start, end) and not text[end:].strip(), ""
    if not hunk.contexts or not scopes:
        note = "landed without its context line, which the file does not have:" if hunk.contexts else ""
        if cursor:
            yield below, note
        yield line, note
        return
    if cursor:
        yield lambda start, end: inside(start, end) and start >= cursor, ""
    yield inside, ""
    if sum(bool(re.search(r"\w", old)) for old in hunk.lines if not old.startswith("+")) >= SURE_LINES:
        first = min(first for first, _ in scopes)
        yield lambda start, end: line(start, end) and start >= first, "lies behind the block that begins with"


def _insert(text: str, hunk: Hunk, scopes: list[Span], name: str, label: str) -> Landed | Refused:
    """Insert the lines of a hunk that has no others below its context, or at the end of the file."""
    new = "".join(f"{line[1:]}\n" for line in hunk.lines if line.startswith("+"))
    if "\r\n" in text:
        new = new.replace("\n", "\r\n")
    if not hunk.contexts or hunk.at_end:
        return Landed(text + new, (f"{label} was added at the end of {name}.",) if text and not hunk.at_end else ())
    context = hunk.contexts[-1]
    if len(scopes) != 1:
        number = f"{len(scopes)} times" if scopes else "not"
        return Refused(
            f"{label} has no lines of the file, and {context!r} occurs {number} in {name}. Add the lines around"
            " the new ones to the hunk."
        )
    place = text.find("\n", scopes[0][0]) + 1
    if text.startswith(new, place):
        return Refused(f"The new text of {label.lower()} is in {name} already: nothing to change.")
    return Landed(text[:place] + new + text[place:])


def _missing_there(text: str, old: str, scopes: list[Span], context: str, name: str, label: str) -> Refused:
    (first, last), more = scopes[0], len(scopes) > 1
    # The lines before count, so that the numbers are those of the file.
    part = text if more else "\n" * text.count("\n", 0, first) + text[first:last]
    shown = nearest(part, old)
    reason = f"{label} was not found in {name} in the block that begins with {context!r}."
    if not shown:
        return Refused(f"{reason} View the file and copy the lines exactly.")
    return Refused(
        f"{reason} This is the nearest text; the lines with - are in the file, those with + in {label.lower()}:\n"
        + shown
    )


# --- the blocks that context lines name -------------------------------------------------------------------------


def _scopes(text: str, contexts: Sequence[str]) -> list[Span]:
    """Return the blocks that begin with a context line, within those that begin with the lines before it.

    Returns:
        An empty list if there is no such block.
    """
    if not contexts:
        return []
    lines = text.split("\n")
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    found = [(0, len(lines))]
    for context in contexts:
        blocks: list[Span] = []
        for first, last in found:
            blocks += (
                (index, _end_of_block(lines, index, last)) for index in _matching(lines, first, last, context)
            )
        found = blocks
    return [(starts[first], min(starts[last], len(text))) for first, last in found]


def _matching(lines: list[str], first: int, last: int, context: str) -> list[int]:
    """Return the lines that a context means: those that are equal, else those that begin with it or contain it."""
    wanted = " ".join(context.split())
    plain = {index: " ".join(lines[index].split()) for index in range(first, last)}
    within = re.compile(rf"(?<!\w){re.escape(wanted)}(?!\w)")
    equal = [index for index, line in plain.items() if line == wanted]
    beginning = [] if equal else [index for index, line in plain.items() if line.startswith(wanted)]
    return equal or beginning or [index for index, line in plain.items() if within.search(line)]


def _end_of_block(lines: list[str], first: int, last: int) -> int:
    """Return the first line behind the block that a line opens, judged by indentation; else the last line."""
    depth = _depth(lines[first])
    below = [index for index in range(first + 1, last) if lines[index].strip()]
    if not below or _depth(lines[below[0]]) <= depth:
        return last
    ends = (
        index for index in below if _depth(lines[index]) <= depth and not lines[index].strip().startswith(_CLOSING)
    )
    return next(ends, last)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _end_of_change(before: str, after: str) -> int:
    """Return the offset in ``after`` behind which both texts are the same."""
    low, high = 0, min(len(before), len(after))
    while low < high:
        middle = (low + high + 1) // 2
        if before[len(before) - middle :] == after[len(after) - middle :]:
            low = middle
        else:
            high = middle - 1
    return len(after) - low
