"""Read text as characters and the gaps between them, so that passages can be compared despite slips.

A gap is a run of blanks and line breaks. A character has a key, which is the same for all forms that a slip may
give it: the key of ``”`` is ``"``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from typing import Final

from msgspec import Struct

from jumpseat.tools.edits.slips import ENTITIES, ESCAPES, NONE, QUOTES, Slip

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

CHARACTERS: Final[Mapping[str, str]] = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
"""The entities that have a name."""

_BLANK: Final = rf"[ \t\f\v{SPECIAL_SPACES}{INVISIBLE}]"
_BREAK: Final = r"\r\n|\r|\n"
_ESCAPED_BREAK: Final = r"\\r\\n|\\r|\\n"
# Signs and letters, as decimal or hexadecimal numbers; blanks do not belong to them.
_ENTITY: Final = (
    "&(?:" + "|".join(CHARACTERS) + r"|#(?:3[3-9]|[4-9]\d|1[01]\d|12[0-6]|\d{4}|(?!160)[12]\d\d)"
    r"|#[xX](?:2[1-9a-fA-F]|[3-6][\da-fA-F]|7[\da-eA-E]|(?![aA]0)[a-fA-F][\da-fA-F]));"
)
_ENTITY_OF_BLANK: Final = "&(?:nbsp|#160|#[xX][aA]0);"
_ESCAPED: Final = r"\\[\"'`\\/]"
_ESCAPED_LETTER: Final = r"\\u(?!00[01]|0020|00[aA]0|20[0-2]|[dD][89a-fA-F]|[fF][eE][fF])[\da-fA-F]{4}"


def _pattern(*, breaks: bool, quotes: bool, letters: bool, entities: bool) -> re.Pattern[str]:
    gap = f"(?:{_BLANK}|{_BREAK}"
    gap += (rf"|{_ESCAPED_BREAK}|\\t" if breaks else "") + (f"|{_ENTITY_OF_BLANK}" if entities else "") + ")+"
    encoded = "|".join([_ESCAPED] * quotes + [_ESCAPED_LETTER] * letters + [_ENTITY] * entities) or "(?!)"
    # The second of two backslashes begins no escape.
    pair = r"\\\\|" if breaks or letters else ""
    return re.compile(rf"(?P<gap>{gap})|(?P<encoded>{encoded})|{pair}\.\.\.|[\s\S]")


_pattern_of: Final = cache(_pattern)
_BREAKS: Final = {False: re.compile(f"({_BREAK})"), True: re.compile(f"({_BREAK}|{_ESCAPED_BREAK})")}
_ESCAPES: Final = rf"{_ESCAPED_BREAK}|\\t|{_ESCAPED_LETTER}|{_ESCAPED}"
_ENTITIES: Final = f"{_ENTITY_OF_BLANK}|{_ENTITY}"
_ESCAPES_OR_ENTITIES: Final = {
    (True, False): re.compile(_ESCAPES),
    (False, True): re.compile(_ENTITIES),
    (True, True): re.compile(f"{_ESCAPES}|{_ENTITIES}"),
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
    pattern = _pattern_of(
        breaks="escaped line ends" in slips,
        quotes="escaped quotes" in slips,
        letters="escaped letters" in slips,
        entities="entities" in slips,
    )
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
        keys.append(_key(_decoded(raw), slips) if kind == "encoded" else _key(raw, slips))
        raws.append(raw)
        gaps.append("")
    return Reading(keys, raws, gaps)


def _is_mark(character: str) -> bool:
    """Return whether a character belongs to the one before: a combining mark, or a part of a Korean syllable."""
    return unicodedata.category(character)[0] == "M" or "\u1160" <= character <= "\u11ff"


def _key(raw: str, slips: frozenset[Slip]) -> str:
    if raw.isascii():
        return "'" if raw == '"' and "other quotes" in slips else raw
    if "typographic characters" in slips and raw in TYPOGRAPHIC:
        return _key(TYPOGRAPHIC[raw], slips)
    return unicodedata.normalize("NFC", raw) if "composed letters" in slips else raw


def _decoded(raw: str) -> str:
    if raw[0] == "\\":
        return chr(int(raw[2:], 16)) if raw[1] == "u" else raw[1:]
    name = raw[1:-1].lower()
    if name[0] != "#":
        return CHARACTERS[name]
    return chr(int(name[2:], 16) if name[1] == "x" else int(name[1:]))


def encodings_of(text: str) -> frozenset[Slip]:
    """Return which kinds of characters a text may have that can be written differently."""
    escapes, entities = "\\" in text, _ESCAPES_OR_ENTITIES[False, True].search(text) is not None
    quotes = QUOTES if '"' in text or "'" in text else NONE
    return (ESCAPES if escapes else NONE) | (ENTITIES if entities else NONE) | quotes


def skeleton(text: str, encodings: frozenset[Slip] = NONE) -> str:
    """Return the keys of all characters and the line feeds of a text; its ``encodings`` are decoded."""
    if encodings & (ESCAPES | ENTITIES):
        pattern = _ESCAPES_OR_ENTITIES[encodings >= ESCAPES, encodings >= ENTITIES]
        text = pattern.sub(_decoded_or_blank, text)
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    text = text.translate(_VISIBLE)
    return text.replace('"', "'") if encodings >= QUOTES else text


def _decoded_or_blank(match: re.Match[str]) -> str:
    raw = match[0]
    return "" if raw in _ESCAPED_BLANKS or re.fullmatch(_ENTITY_OF_BLANK, raw) else _decoded(raw)


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
    if "&" in blanks:
        blanks = re.sub(_ENTITY_OF_BLANK, " ", blanks)
    return blanks if blanks.isascii() else blanks.translate(_PLAIN)


_PLAIN: Final = str.maketrans({**dict.fromkeys(SPECIAL_SPACES, " "), **dict.fromkeys(INVISIBLE)})
