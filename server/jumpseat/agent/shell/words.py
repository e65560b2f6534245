"""The words of a command, as far as they are known before the shell expands them."""

from __future__ import annotations

from msgspec import Struct


class Word(Struct, frozen=True):
    """A word of a command. ``text`` has its quotes removed; ``fixed`` means that the shell uses the word unchanged.

    A word that is not fixed may be a ``glob``: a file name pattern and nothing else. It is ``wild`` if any part of
    it is such a pattern. It is ``single`` if its expansion is one word.
    """

    text: str
    fixed: bool = True
    glob: bool = False
    wild: bool = False
    single: bool = True
