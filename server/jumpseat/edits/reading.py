"""Read text as characters and the gaps between them, so that passages can be compared despite slips.

A gap is a run of blanks and line breaks. A character has a key, which is the same for all forms that a slip may
give it: the key of ``”`` is ``"``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from jumpseat.edits.slips import ENTITIES, ESCAPES, NONE, Slip

SPECIAL_SPACES: Final = (
    "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
)
INVISIBLE: Final = "\u200b\u200c\u200d\u2060\ufeff\u00ad"

TYPOGRAPHIC: Final[Mapping[str, str]] = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4\u02bc", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    "\u2026": "...",
}

CHARACTERS: Final[Mapping[str, str]] = {
    "&lt;": "<",
    "&gt;": ">",
    "&amp;": "&",
    "&quot;": '"',
    "&apos;": "'",
    "&#39;": "'",
    "&#34;": '"',
    "&#x27;": "'",
    "&#60;": "<",
    "&#62;": ">",
    "&#38;": "&",
}

_BLANK: Final = rf"[ \t\f\v{SPECIAL_SPACES}{INVISIBLE}]"
_BREAK: Final = r"\r\n|\r|\n"
_ESCAPED_BREAK: Final = r"\\r\\n|\\r|\\n"
_ENTITY: Final = "&(?:" + "|".join(entity[1:-1] for entity in CHARACTERS) + ");"
_ESCAPED: Final = r"\\[\"'`\\/]"


def _pattern(*, breaks: bool, quotes: bool, entities: bool) -> re.Pattern[str]:
    gap = f"(?:{_BLANK}|{_BREAK}" + (rf"|{_ESCAPED_BREAK}|\\t" if breaks else "") + ")+"
    encoded = "|".join([_ESCAPED] * quotes + [_ENTITY] * entities) or "(?!)"
    # The second of two backslashes begins no escape.
    pair = r"\\\\|" if breaks else ""
    return re.compile(rf"(?P<gap>{gap})|(?P<encoded>{encoded})|{pair}\.\.\.|[\s\S]")


_PATTERNS: Final = {
    (breaks, quotes, entities): _pattern(breaks=breaks, quotes=quotes, entities=entities)
    for breaks in (False, True)
    for quotes in (False, True)
    for entities in (False, True)
}
_BREAKS: Final = {False: re.compile(f"({_BREAK})"), True: re.compile(f"({_BREAK}|{_ESCAPED_BREAK})")}
_ESCAPES_OR_ENTITIES: Final = {
    (True, False): re.compile(rf"{_ESCAPED_BREAK}|\\t|{_ESCAPED}"),
    (False, True): re.compile(_ENTITY),
    (True, True): re.compile(rf"{_ESCAPED_BREAK}|\\t|{_ESCAPED}|{_ENTITY}"),
}
_ESCAPED_BLANKS: Final = frozenset({"\\r\\n", "\\r", "\\n", "\\t"})
# Everything that cannot be seen is deleted, but for line feeds.
_VISIBLE: Final = str.maketrans({**dict.fromkeys(" \t\r\f\v" + SPECIAL_SPACES + INVISIBLE), **TYPOGRAPHIC})


class Reading(Struct, frozen=True):
    """A text: the gap ``gaps[i]`` precedes the character with ``keys[i]``, written ``raws[i]``; one gap follows."""

    keys: list[str]
    raws: list[str]
    gaps: list[str]

    def part(self, first: int, end: int) -> Reading:
        """Return the characters from ``first`` to before ``end``, with the gaps around."""
        return Reading(self.keys[first:end], self.raws[first:end], self.gaps[first : end + 1])


def read(text: str, slips: frozenset[Slip]) -> Reading:
    """Read ``text``; forms of a character that differ by one of ``slips`` have the same key."""
    keys: list[str] = []
    raws: list[str] = []
    gaps = [""]
    pattern = _PATTERNS["escaped line ends" in slips, "escaped quotes" in slips, "entities" in slips]
    for match in pattern.finditer(text):
        raw = match[0]
        kind = match.lastgroup
        if kind == "gap":
            gaps[-1] = raw
            continue
        if raw > "\u02ff" and keys and not gaps[-1] and _is_mark(raw):
            # A letter with its marks is one character.
            raws[-1] += raw
            keys[-1] = _key(raws[-1], slips)
            continue
        keys.append(_decoded(raw) if kind == "encoded" else _key(raw, slips))
        raws.append(raw)
        gaps.append("")
    return Reading(keys, raws, gaps)


def _is_mark(character: str) -> bool:
    """Return whether a character belongs to the one before: a combining mark, or a part of a Korean syllable."""
    return unicodedata.category(character)[0] == "M" or "\u1160" <= character <= "\u11ff"


def _key(raw: str, slips: frozenset[Slip]) -> str:
    if raw.isascii():
        return raw
    if "typographic characters" in slips and raw in TYPOGRAPHIC:
        return TYPOGRAPHIC[raw]
    return unicodedata.normalize("NFC", raw) if "composed letters" in slips else raw


def _decoded(raw: str) -> str:
    return CHARACTERS[raw] if raw[0] == "&" else raw[1:]


def encodings_of(text: str) -> frozenset[Slip]:
    """Return which kinds of encoded characters a text may have: escapes, entities, or both."""
    escapes, entities = "\\" in text, _ESCAPES_OR_ENTITIES[False, True].search(text) is not None
    return (ESCAPES if escapes else NONE) | (ENTITIES if entities else NONE)


def skeleton(text: str, encodings: frozenset[Slip] = NONE) -> str:
    """Return the keys of all characters and the line feeds of a text; its ``encodings`` are decoded."""
    if encodings:
        pattern = _ESCAPES_OR_ENTITIES[encodings >= ESCAPES, encodings >= ENTITIES]
        text = pattern.sub(lambda match: "" if match[0] in _ESCAPED_BLANKS else _decoded(match[0]), text)
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return text.translate(_VISIBLE)


def split_breaks(gap: str, *, escapes: bool = False) -> list[str]:
    """Split a gap at its line breaks: blanks, break, blanks, break, ..., blanks."""
    return _BREAKS[escapes].split(gap)


def is_break(gap: str, *, escapes: bool = False) -> bool:
    """Return whether a gap contains a line break."""
    return _BREAKS[escapes].search(gap) is not None


def is_word(key: str) -> bool:
    """Return whether a character belongs to words."""
    return key == "_" or key.isalnum()


def plain_blanks(blanks: str) -> str:
    """Replace special spaces by spaces, and delete characters without width."""
    return blanks if blanks.isascii() else blanks.translate(_PLAIN)


_PLAIN: Final = str.maketrans({**dict.fromkeys(SPECIAL_SPACES, " "), **dict.fromkeys(INVISIBLE)})
