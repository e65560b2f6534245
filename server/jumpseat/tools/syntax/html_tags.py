"""The tags of HTML: those that are not closed, and elements without an end tag. Pure, in linear time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from jumpseat.tools.syntax.parsing import MOST_ERRORS, SyntaxProblem, point

_TAG: Final = re.compile(
    rb"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<[!?][^>]*+>?+"
    rb"|<(?P<end>/?)(?P<name>[A-Za-z][^\s/<>\"'=]*+)"
    rb"(?:\s++|/(?!>)|[^\s\"'<>/=]++(?:\s*+=\s*+(?:\"[^\"]*+\"(?=[\s/>])|'[^']*+'(?=[\s/>])|[^\s\"'<>`]++(?!\"|')))?+)*+"
    rb"(?P<close>/?>)?+",
    re.DOTALL,
)
_WITHOUT_END: Final = frozenset(
    b"area base br col embed frame hr img input link meta param source track wbr".split()
)
_END_OPTIONAL: Final = frozenset(
    b"p li dt dd tr td th thead tbody tfoot caption colgroup option optgroup html head body rb rt rp rtc".split()
)
LONGEST_NAME: Final = 16
_STRAY_END: Final = re.compile(rb"(?<![\w<&/-])([A-Za-z]+)>\Z")
_RAW: Final = {
    name: re.compile(rb"</" + name + rb"(?=[\s/>])", re.IGNORECASE)
    for name in (b"script", b"style", b"textarea", b"title")
}
"""Elements whose text has no tags, with their ends."""


def html_errors(data: bytes) -> list[SyntaxProblem] | None:
    """Return the errors in the tags of a document; ``None`` if there are too many.

    End tags that HTML does not require may be missing, and any element may end with ``/>``.
    """
    found: list[SyntaxProblem] = []
    for offset, message in _errors(data):
        if len(found) == MOST_ERRORS:
            return None
        row, column = point(data, offset)
        found.append(SyntaxProblem(row, column, row, message))
    return sorted(found, key=lambda problem: problem.row)


def _errors(data: bytes) -> Iterator[tuple[int, str]]:
    opened: list[tuple[bytes, int]] = []
    # How many of each are opened, so that end tags of none cost nothing.
    depths: Counter[bytes] = Counter()
    position = 0
    while (match := _TAG.search(data, position)) is not None:
        if (stray := _stray_end(data, position, match.start(), opened, depths)) is not None:
            yield stray
        position = match.end()
        if match["name"] is None:
            if match[0].startswith(b"<!--") and not match[0].endswith(b"-->"):
                yield match.start(), "the comment is not closed"
            elif match[0][:9].lower() == b"<!doctype" and b"<" in match[0][9:] and b"[" not in match[0]:
                yield match.start(), "the tag <!DOCTYPE> is not closed"
            continue
        name, close = match["name"].lower(), match["close"]
        if close is None:
            yield match.start(), f"the tag {_quoted(match)} is not closed"
        if match["end"]:
            yield from _ended(opened, depths, name, match)
        elif name not in _WITHOUT_END and close != b"/>":
            raw = _RAW.get(name)
            if raw is None:
                opened.append((name, match.start()))
                depths[name] += 1
                continue
            raw_end = raw.search(data, position)
            end = None if raw_end is None else _TAG.match(data, raw_end.start())
            if end is not None:
                position = end.end()
                if end["close"] is None:
                    yield end.start(), f"the tag {_quoted(end)} is not closed"
            elif close is not None:
                yield match.start(), f"{_quoted(match)} is not closed"
                return
    if (stray := _stray_end(data, position, len(data), opened, depths)) is not None:
        yield stray
    for name, start in opened:
        if name not in _END_OPTIONAL:
            yield start, f"<{name.decode('utf-8', 'replace')}> is not closed"


def _stray_end(
    data: bytes, start: int, end: int, opened: list[tuple[bytes, int]], depths: Counter[bytes]
) -> tuple[int, str] | None:
    """Return an end tag without its beginning, such as ``td>``, at the end of a text; its element is still open."""
    text = data[start:end].rstrip()
    if not text.endswith(b">"):
        return None
    word = _STRAY_END.search(text[-LONGEST_NAME:])
    name = b"" if word is None else word[1].lower()
    inner = opened[-1][0] if opened else b""
    if len(inner) > 1 and text[:-1].lower().endswith(inner):
        # It may follow a word.
        name = inner
    if name not in _END_OPTIONAL or not depths[name]:
        return None
    place = start + len(text) - len(name) - 1
    return place, f"'</' is missing before '{name.decode()}>'"


def _ended(
    opened: list[tuple[bytes, int]], depths: Counter[bytes], name: bytes, match: re.Match[bytes]
) -> Iterator[tuple[int, str]]:
    """Close an element, and those in it."""
    if not depths.get(name):
        if name not in _END_OPTIONAL and name not in _WITHOUT_END:
            yield match.start(), f"{_quoted(match)} closes no element"
        return
    while (inner := opened.pop())[0] != name:
        depths[inner[0]] -= 1
        if inner[0] not in _END_OPTIONAL:
            yield inner[1], f"<{inner[0].decode('utf-8', 'replace')}> is not closed"
    depths[name] -= 1


def _quoted(match: re.Match[bytes]) -> str:
    return f"<{(match['end'] + match['name'][:40]).decode('utf-8', 'replace')}>"
