"""Make every character of a text visible, for people who decide whether a call may run. Pure.

Models, files and servers write the texts that a permission question contains. Characters that cannot be seen, that
change the order of others, or that look like a letter, dot or slash of ASCII make a harmful call look harmless.
Such a character is shown as ``<U+202E>``, a control character as its picture (``␛``).
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final
from urllib.parse import urlsplit

LINE_CHARS: Final = 500
"""Characters of a description on one line; the rest is cut."""

MAX_SPACES: Final = 60
"""The longest run of spaces that is shown as it is. Indentation is shorter, padding that hides text is longer."""

MAX_EMPTY_LINES: Final = 3

# The categories Cc, Cf, Cs, Co, Zl and Zp, white space other than space, fillers and selectors that have no glyph.
# U+200D and U+FE0F count outside of emoji only, which they compose.
_INVISIBLE: Final = re.compile(
    "(?<![\u2190-\u2bff\U0001f000-\U0001faff\ufe0f])[\u200d\ufe0f]"
    "|[\x00-\x08\x0b-\x1f\x7f-\xa0\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u1680"
    "\u17b4\u17b5\u180b-\u180f\u2000-\u200c\u200e\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ud800-\udfff\ue000-\uf8ff"
    "\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\U00016fe4\U000110bd\U000110cd\U00013430-\U0001345f\U0001bca0-\U0001bca3"
    "\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
)
# Forms of ASCII characters for other uses, and punctuation that passes for a dot, a slash, a bar, a colon, a quote
# or, where an option begins, a hyphen.
_IMITATION: Final = re.compile(
    "[\u01c0\u01c3\u02d0\u037e\u0589\u05c3\u2010-\u2012\u2024\u2043\u2044\u2102\u210a-\u2115\u2119-\u211d\u2124"
    "\u2128-\u2134\u2139\u2145-\u2149\u2160-\u217f\u2212\u2215\u2216\u2223\u2236\u2571-\u2573\u2758\u2759\u27cb\u27cd\u29f5"
    "\u29f8\u29f9\ua789\ufe58\ufe63\ufe68\uff01-\uff5e\uffe8\U0001d400-\U0001d7ff]"
    r"|(?<!\S)[\u2013-\u2015](?=\S)"
)
# What reorders text, has no width, or changes a terminal, in any language. Joiners may be part of a script.
_CONTROLS: Final = re.compile(
    "[\x00-\x08\x0b\x0d-\x1f\x7f-\x84\x86-\x9f\u061c\u115f\u1160\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\uffa0\U000e0000-\U000e007f]"
)
_WORD: Final = re.compile(r"[^\W\d_]+")
_OTHER_SCRIPTS: Final = ("ARMENIAN ", "CHEROKEE ", "COPTIC ", "CYRILLIC ", "GREEK ", "LISU ")
"""Scripts with letters that look like those of ASCII, by the beginnings of their Unicode names."""
_LATIN: Final = ("LATIN LETTER SMALL CAPITAL ", "LATIN SMALL LETTER DOTLESS ", "LATIN SMALL LETTER SCRIPT G")
_LATIN_LETTERS: Final = "\u0251\u0269\u027e\u028b"
"""Letters that look like those of ASCII, and are deceptive between these only: some languages have them."""

_SPACES: Final = re.compile(rf"[ \t]{{{MAX_SPACES + 1},}}")
_EMPTY_LINES: Final = re.compile(rf"\n(?:[ \t]*\n){{{MAX_EMPTY_LINES + 1},}}")


def visible(text: str) -> str:
    """Return ``text`` with all invisible and imitating characters made visible; keep line breaks and tabs."""
    if not text.isascii():
        text = _WORD.sub(_show_mixed, text)
    return _IMITATION.sub(_show, _INVISIBLE.sub(_show, text))


def deceptive_characters(text: str) -> list[str]:
    """Return the characters of ``text`` that :func:`visible` replaces, each once, as ``U+202E``."""
    found = {*_INVISIBLE.findall(text), *_IMITATION.findall(text)}
    for word in () if text.isascii() else _WORD.findall(text):
        found.update(_letters_like_ascii(word))
    return [f"U+{ord(character):04X}" for character in sorted(found)]


def deceptive_in_text(text: str) -> list[str]:
    """Return the characters of ordinary text that make it look like another one, each once, as ``U+202E``.

    Fewer than in a command: punctuation and spaces of other languages deceive nobody there.
    """
    found = set(_CONTROLS.findall(text.replace("\r\n", "\n")))
    if not text.isascii():
        for word in _WORD.findall(text):
            found.update(_letters_of_other_scripts(word))
    return [f"U+{ord(character):04X}" for character in sorted(found)]


def has_hidden_parts(text: str) -> bool:
    """Return whether white space may push a part of ``text`` out of sight."""
    return without_padding(text) != text


def without_padding(text: str) -> str:
    """Replace long runs of spaces and empty lines by notes, so that they push nothing out of sight."""
    text = _SPACES.sub(lambda found: f"<{len(found[0])} spaces>", text)
    return _EMPTY_LINES.sub(lambda found: f"\n<{found[0].count(chr(10)) - 1} empty lines>\n", text)


def on_one_line(text: str, limit: int = LINE_CHARS) -> str:
    """Return a description made visible and joined to one line of at most ``limit`` characters."""
    line = visible(" ".join(text.split()))
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def exact_line(text: str) -> str:
    """Return all of a name, path or other value on one line, with line breaks and tabs made visible, too."""
    return without_padding(visible(text)).replace("\n", "␊").replace("\t", "␉")


def visible_url(url: str) -> str:
    """Return ``url`` made visible, on one line, with the ASCII form of a host in other letters."""
    line = exact_line(url)
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return line
    return line if host.isascii() else f"{line} (host: {_ascii_host(host)})"


def _ascii_host(host: str) -> str:
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return "".join(letter if letter.isascii() else f"<U+{ord(letter):04X}>" for letter in host)


def _show(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"<U+{code:04X}>"


def _show_mixed(found: re.Match[str]) -> str:
    others = _letters_like_ascii(found[0])
    return "".join(f"<U+{ord(letter):04X}>" if letter in others else letter for letter in found[0])


def _letters_like_ascii(word: str) -> set[str]:
    """Return the letters of a word that pass for ASCII letters, if all others are ASCII letters."""
    others = {letter for letter in word if not letter.isascii()}
    if not others or len(others) == len(set(word)):
        return set()
    alike = {
        letter
        for letter in others
        if letter in _LATIN_LETTERS or unicodedata.name(letter, "").startswith((*_OTHER_SCRIPTS, *_LATIN))
    }
    return alike if alike == others else _letters_of_other_scripts(word)


def _letters_of_other_scripts(word: str) -> set[str]:
    """Return the letters that do not belong in a word with ASCII letters."""
    if word.isascii() or not any(letter.isascii() for letter in word):
        return set()
    return {
        letter
        for letter in word
        if not letter.isascii() and unicodedata.name(letter, "").startswith(_OTHER_SCRIPTS)
    }
