"""The letters of a new text as the file writes them."""

from __future__ import annotations

from typing import Final
from unicodedata import is_normalized, normalize

from jumpseat.tools.edits.lines import Token
from jumpseat.tools.edits.reading import TYPOGRAPHIC, Reading, read
from jumpseat.tools.edits.slips import Slip


class UncertainError(Exception):
    """The new text cannot be fitted to the place with certainty; the message is the reason, for the model."""


class Letters:
    """Undoes the slips of single characters in new words."""

    def __init__(self, wanted: Reading, there: Reading, slips: frozenset[Slip]) -> None:
        self._slips = slips
        self._meant: dict[str, set[str]] = {}
        self._kept: set[str] = set()
        form: str | None = None
        for raw, file, key in zip(wanted.raws, there.raws, wanted.keys, strict=True):
            if raw != file:
                self._meant.setdefault(raw, set()).add(file)
                if "composed letters" in slips and normalize("NFC", raw) == normalize("NFC", file):
                    form = "NFC" if is_normalized("NFC", file) else "NFD"
            elif raw != key or raw in _AMBIGUOUS:
                self._kept.add(raw)
        self._form = form
        written = [file for files in self._meant.values() for file in files]
        self._escapes_letters = "escaped letters" in slips and all(file.startswith("\\u") for file in written)

    def undo(self, token: Token) -> str:
        """Return a new word as it is written in the file.

        Raises:
            UncertainError: it is not certain which of its characters are meant as they are written.
        """
        if not self._meant:
            return token.raw
        return "".join(map(self._undone, token.letters))

    def _undone(self, letter: str) -> str:
        meant = self._meant.get(letter)
        if meant is not None and letter in self._kept:
            raise UncertainError(f"it is not certain how to write {letter!r} of new_str in the file")
        if meant is not None and len(meant) == 1:
            return next(iter(meant))
        if meant is not None:
            raise UncertainError(f"it is not certain how to write {letter!r} of new_str in the file")
        if self._form is not None and not letter.isascii() and letter not in TYPOGRAPHIC:
            return normalize("NFC" if self._form == "NFC" else "NFD", letter)
        return self._of_kind(letter)

    def _of_kind(self, letter: str) -> str:
        """Return a character that the passage does not have, but others of its kind."""
        if letter in TYPOGRAPHIC and letter not in self._kept:
            flat = all(
                (len(file) == 1 and file.isascii()) or file == "..."
                for files in self._meant.values()
                for file in files
            )
            if flat and any(raw in TYPOGRAPHIC for raw in self._meant):
                return TYPOGRAPHIC[letter]
        if not letter.isascii() and len(letter) == 1 and letter not in self._kept and self._escapes_letters:
            return f"\\u{ord(letter):04x}"
        if (
            len(letter) > 1
            and letter[0] in "\\&"
            and any(raw[0] == letter[0] and len(raw) > 1 for raw in self._meant)
        ):
            return read(letter, self._slips).keys[0]
        return letter


_AMBIGUOUS: Final = frozenset("\"'<>&-`\\/")
