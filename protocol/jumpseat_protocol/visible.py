"""Make every character of a text visible, for people who decide whether a call may run. Pure.

Models, files and servers write the texts that a permission question contains. Characters that cannot be seen, that
change the order of others, or that look like a letter, dot or slash of ASCII make a harmful call look harmless.
Such a character is shown as ``<U+202E>``, a control character as its picture (``␛``).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from itertools import compress
from operator import not_
from typing import Final
from urllib.parse import quote, urlsplit, urlunsplit

LINE_CHARS: Final = 500
"""Characters of a description on one line; the rest is cut."""

MAX_SPACES: Final = 60
"""The longest run of spaces that is shown as it is. Indentation is shorter, padding that hides text is longer."""

MAX_EMPTY_LINES: Final = 3

# The categories Cc, Cf, Cs, Co, Zl and Zp, white space other than space, fillers and selectors that have no glyph.
_INVISIBLE: Final = (
    "\x00-\x08\x0b-\x1f\x7f-\xa0\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u1680"
    "\u17b4\u17b5\u180b-\u180f\u2000-\u200c\u200e\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ud800-\udfff\ue000-\uf8ff"
    "\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\U00016fe4\U000110bd\U000110cd\U00013430-\U0001345f\U0001bca0-\U0001bca3"
    "\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff\U000f0000-\U0010ffff"
)
# Forms of ASCII characters for other uses, and punctuation that passes for a dot, slash, bar, colon or quote.
_IMITATION: Final = (
    "\u01c0\u01c3\u02d0\u037e\u0589\u05c3\u2010-\u2012\u2024\u2043\u2044\u2102\u210a-\u2115\u2119-\u211d\u2124"
    "\u2128-\u2134\u2139\u2145-\u2149\u2160-\u217f\u2212\u2215\u2216\u2223\u2236\u2571-\u2573\u2758\u2759\u27cb\u27cd\u29f5"
    "\u29f8\u29f9\ua789\ufe58\ufe63\ufe68\uff01-\uff5e\uffe8\U0001d400-\U0001d7ff"
)
_SHOWN: Final = re.compile(f"[{_INVISIBLE}{_IMITATION}]")
_IN_PLACES: Final = (
    # Outside of emoji, which they compose. The first one's place is judged by the second one, not the reverse.
    *((mark, re.compile(f"(?<![\u2190-\u2bff\U0001f000-\U0001faff\ufe0f]){mark}")) for mark in "\u200d\ufe0f"),
    # Passes for a hyphen where an option begins.
    *((dash, re.compile(rf"(?<!\S){dash}(?=[^ \t\n])")) for dash in "\u2013\u2014\u2015"),
)
"""Characters that are shown in some places only, with the patterns of these."""
# What reorders text, has no width, or changes a terminal, in any language. Joiners may be part of a script.
_CONTROLS: Final = re.compile(
    "[\x00-\x08\x0b\x0d-\x1f\x7f-\x84\x86-\x9f\u061c\u115f\u1160\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\uffa0\U000e0000-\U000e007f]"
)
_MIXED_WORD: Final = re.compile(r"(?<![^\W\d_])([A-Za-z]++[^\W\d_]+|[^\W\d_A-Za-z]++[^\W\d_]+)")
"""A word with letters of ASCII and others."""
_OTHER_SCRIPTS: Final = ("ARMENIAN ", "CHEROKEE ", "COPTIC ", "CYRILLIC ", "GREEK ", "LISU ")
"""Scripts with letters that look like those of ASCII, by the beginnings of their Unicode names."""
_LATIN: Final = ("LATIN LETTER SMALL CAPITAL ", "LATIN SMALL LETTER DOTLESS ", "LATIN SMALL LETTER SCRIPT G")
_LATIN_LETTERS: Final = "\u0251\u0269\u027e\u028b"
"""Letters that look like those of ASCII, and are deceptive between these only: some languages have them."""
_NAMED: Final = re.compile(
    "[\u0131\u0237-\u058f\u10a0-\u13ff\u1c80-\u1fff\u2c60-\u2dff\ua4d0-\ua7ff\uab30-\uabbf\ufb00-\ufb17"
    "\U00010140-\U000102ff\U00010780-\U000107bf\U00011fb0-\U00011fff\U0001d200-\U0001d24f\U0001df00-\U0001e08f]"
)
"""All letters that have such names, and others: there is no time to look up every name."""
# All that is visible in ASCII: only other characters are encoded.
_IN_URLS: Final = "".join(map(chr, range(33, 127)))
_ASCII: Final = frozenset(map(chr, range(128)))

_SPACES: Final = re.compile(rf"[ \t]{{{MAX_SPACES + 1},}}+")
_EMPTY_LINES: Final = re.compile(rf"\n(?:[ \t]*+\n){{{MAX_EMPTY_LINES + 1},}}+")


def visible(text: str) -> str:
    """Return ``text`` with all invisible and imitating characters made visible; keep line breaks and tabs."""
    # No call for each character: that would take most of a second for a megabyte of them.
    letters = set(text)
    text = _show_mixed(text, letters)
    for letter, pattern in _IN_PLACES:
        if letter in letters:
            text = _show(letter).join(pattern.split(text))
    if not (found := _shown_anywhere(letters)):
        return text
    # With an entry for each character, as one without takes three times as long.
    return text.translate(
        {ord(letter): _show(letter) if letter in found else letter for letter in letters | _ASCII}
    )


def deceptive_characters(text: str) -> list[str]:
    """Return the characters of ``text`` that :func:`visible` replaces, each once, as ``U+202E``."""
    letters = set(text)
    found = _shown_anywhere(letters)
    found.update(letter for letter, pattern in _IN_PLACES if letter in letters and pattern.search(text))
    found.update(*_deceptive_letters(text, letters))
    return _codes(found)


def deceptive_in_text(text: str) -> list[str]:
    """Return the characters of ordinary text that make it look like another one, each once, as ``U+202E``.

    Fewer than in a command: punctuation and spaces of other languages deceive nobody there.
    """
    letters = set(text.replace("\r\n", "\n"))
    found = set(_CONTROLS.findall("".join(letters)))
    scripts, _, _ = _alike(letters)
    if scripts:
        found |= scripts.intersection("".join(_MIXED_WORD.findall(text)))
    return _codes(found)


def has_hidden_parts(text: str) -> bool:
    """Return whether white space may push a part of ``text`` out of sight."""
    return without_padding(text) != text


def without_padding(text: str) -> str:
    """Replace long runs of spaces and empty lines by notes, so that they push nothing out of sight."""
    text = _SPACES.sub(lambda found: f"<{len(found[0])} spaces>", text)
    return _EMPTY_LINES.sub(lambda found: f"\n<{found[0].count(chr(10)) - 1} empty lines>\n", text)


def on_one_line(text: str, limit: int = LINE_CHARS) -> str:
    """Return a description made visible and joined to one line of at most ``limit`` characters."""
    # A longer text is cut anyway.
    line = visible(" ".join(text.split(maxsplit=limit))[: limit + 1])
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


def plain_url(url: str) -> str:
    """Return the address that ``url`` leads to, in visible ASCII: no letter of it can imitate another.

    Raises:
        ValueError: the address has no host, a host in letters that none has, or a name before its host.
    """
    parts = urlsplit(url)
    if parts.hostname is None or "@" in parts.netloc:
        raise ValueError(f"expected a host, without a name before it, in {exact_line(url)[:200]!r}")
    host = parts.hostname if parts.hostname.isascii() else parts.hostname.encode("idna").decode("ascii")
    port = f":{parts.port}" if parts.port is not None else ""
    netloc = f"[{host}]{port}" if ":" in host else f"{host}{port}"
    return quote(urlunsplit(parts._replace(netloc=netloc)), safe=_IN_URLS)


def _ascii_host(host: str) -> str:
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return "".join(letter if letter.isascii() else f"<U+{ord(letter):04X}>" for letter in host)


def _shown_anywhere(letters: set[str]) -> set[str]:
    return set(_SHOWN.findall("".join(letters)))


def _codes(letters: Iterable[str]) -> list[str]:
    return [f"U+{ord(letter):04X}" for letter in sorted(letters)]


def _show(letter: str) -> str:
    code = ord(letter)
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"<U+{code:04X}>"


def _alike(letters: set[str]) -> tuple[set[str], set[str], set[str]]:
    """Return the letters of other scripts; those and Latin ones that look like ASCII; all others but ASCII."""
    names = {letter: unicodedata.name(letter, "") for letter in _NAMED.findall("".join(letters))}
    scripts = {letter for letter, name in names.items() if name.startswith(_OTHER_SCRIPTS)}
    alike = {letter for letter, name in names.items() if letter in _LATIN_LETTERS or name.startswith(_LATIN)}
    return scripts, scripts | alike, letters - scripts - alike - _ASCII


def _deceptive_letters(text: str, letters: set[str]) -> tuple[set[str], set[str]]:
    """Return the letters of mixed words that pass for ASCII: those of other scripts, and if all pass, of any."""
    scripts, alike, others = _alike(letters)
    words = _MIXED_WORD.findall(text) if alike else []
    return (
        scripts.intersection("".join(words)),
        alike.intersection("".join(word for word in words if others.isdisjoint(word))),
    )


def _show_mixed(text: str, letters: set[str]) -> str:
    scripts, alike, others = _alike(letters)
    parts = _MIXED_WORD.split(text) if alike else []
    if not (words := parts[1::2]):
        return text
    whole = [others.isdisjoint(word) for word in words] if others else [True] * len(words)
    shown = {
        True: iter(_show_in(compress(words, whole), alike, letters)),
        False: iter(_show_in(compress(words, map(not_, whole)), scripts, letters)),
    }
    parts[1::2] = [next(shown[is_whole]) for is_whole in whole]
    return "".join(parts)


def _show_in(words: Iterable[str], shown: set[str], letters: set[str]) -> list[str]:
    table = {ord(letter): _show(letter) if letter in shown else letter for letter in letters | _ASCII}
    return "\n".join(words).translate(table).split("\n")
