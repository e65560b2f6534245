"""The forms in which a provider may repeat a key: as it was sent, in base64, and in parts.

A key that may be an ordinary word is a dummy for a local server, such as ``ollama``, ``none`` or ``not-needed``.
Such words stay in texts.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from typing import Final

SHORTEST_PART: Final = 8
"""Length in characters from which a part is as secret as the whole key."""

SHORTEST_PHRASE: Final = 16
"""Length in characters from which texts do not contain a key of words by chance."""

_DIGIT: Final = re.compile(r"[0-9]")
_URL_SAFE: Final = str.maketrans("+/", "-_")
_WORDS: Final = re.compile(r"[A-Z]?[a-z]*(?:[\W_]+[A-Z]?[a-z]*)*|[A-Z]+(?:[\W_]+[A-Z]+)*")


def is_dummy(key: str) -> bool:
    """Return whether ``key`` is so short, or so much like words, that texts may contain it by chance."""
    return len(key) < SHORTEST_PART or (len(key) < SHORTEST_PHRASE and _WORDS.fullmatch(key) is not None)


def forms_of(key: str) -> set[str]:
    """Return ``key``, its reverse, and the text that is common to the base64 of everything that contains it."""
    data = key.encode()
    forms = {key, key[::-1]}
    for before in range(3):
        # Three bytes become four characters: the first and last ones depend on the bytes around the key.
        coded = base64.b64encode(bytes(before) + data).decode()
        begin, end = -(-before * 8 // 6), (before + len(data)) * 8 // 6
        forms.update((coded[begin:end], coded[begin:end].translate(_URL_SAFE)))
    return {form for form in forms if len(form) >= SHORTEST_PART}


def replace_parts(keys: Iterable[str], text: str, mask: str) -> str:
    """Return ``text`` with ``mask`` in place of every part of a key with at least :data:`SHORTEST_PART` characters.

    A part without a digit may be a word, and stays.
    """
    length = SHORTEST_PART
    every = (key[at : at + length] for key in keys for at in range(len(key) - length + 1))
    parts = {part for part in every if _DIGIT.search(part)}
    pieces: list[str] = []
    done = at = 0
    while at + length <= len(text):
        if text[at : at + length] not in parts:
            at += 1
            continue
        pieces += [text[done:at], mask]
        while text[at : at + length] in parts:
            at += 1
        done = at = at + length - 1
    return "".join((*pieces, text[done:]))
