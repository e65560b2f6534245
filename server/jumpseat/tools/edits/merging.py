"""Carry a change from the passage that a model wrote over to the place that the model meant.

The change is the difference between the passage and the new text. What it keeps has the bytes of the file
afterwards; what it adds gets the file's form, if the passage shows which slips to undo.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from jumpseat.tools.edits.indentation import Block, closes_another_block, indentation_step, new_indentations
from jumpseat.tools.edits.letters import Letters, UncertainError
from jumpseat.tools.edits.lines import Line, Token, blanks_of, opcodes, plain_indentation, similar_lines, to_lines
from jumpseat.tools.edits.places import Place
from jumpseat.tools.edits.reading import (
    Reading,
    plain_blanks,
    read,
    skeleton,
    split_breaks,
)
from jumpseat.tools.edits.slips import ENTITIES, ESCAPES, NONE, QUOTES, Slip


def merge(text: str, place: Place, old: str, new: str) -> tuple[int, int, str]:
    """Return the start and end of the passage to replace in ``text``, and what replaces it.

    ``place`` is where ``text`` has ``old``, which contains at least one character that is not blank.

    Raises:
        UncertainError: the new text cannot be fitted to the place.
    """
    slips = place.slips
    ending = _line_end(text, place)
    wanted, there = read(old, slips), read(text[place.start : place.end], slips)
    if "escaped line ends" in slips and new.count("\\\\n") != old.count("\\\\n"):
        raise UncertainError("it is not certain which backslashes in new_str are meant")
    if wanted.keys != there.keys:
        raise UncertainError("old_str can be read in several ways")
    if "other quotes" in slips and not _quoted_places(old):
        # A quote that belongs to no string is another sign, such as an apostrophe.
        raise UncertainError("it is not certain which quotes are meant")
    new_slips = slips - _absent_slips(wanted, there, new)
    result = read(new, new_slips)
    if not result.keys:
        return _deletion(text, place, wanted, new, ending)
    within = place.start > 0 and text[place.start - 1] not in "\r\n"
    ends_within = place.end < len(text) and text[place.end] not in "\r\n"
    merger = _Merger(wanted, there, result, slips, new_slips, ending, within=within, ends_within=ends_within)
    if "indentation" in slips:
        merger.step = indentation_step(text)
        merger.following = next(
            (line for line in text[place.end : place.end + 2000].split("\n") if line.strip()), ""
        )
    merged = merger.merged()
    # The content must be that of the new text, whatever was decoded.
    if all(
        _visible(merged, encodings) != _visible(new, encodings) for encodings in (NONE, ESCAPES, ENTITIES, QUOTES)
    ):
        raise UncertainError("old_str and new_str differ from the file in too many ways")
    if slips & (ESCAPES | ENTITIES) and _CURLY.intersection(merged).difference(text):
        # What wrote the passage otherwise may have beautified the quotes as well.
        raise UncertainError("it is not certain whether the typographic quotes in new_str are meant")
    pairs = ((text[place.start : place.end], old), (merged, new))
    if "other quotes" in slips and any(_quoted_places(one) != _quoted_places(other) for one, other in pairs):
        raise UncertainError("it is not certain which quotes are meant")
    return place.start, place.end, merged


_CURLY: Final = frozenset("\u2018\u2019\u201c\u201d")
_QUOTED: Final = re.compile(r"\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+'")


def _quoted_places(text: str) -> list[tuple[int, int]]:
    """Return where the strings of a text begin and end; blanks do not count."""
    visible = skeleton(text)
    return [match.span() for match in _QUOTED.finditer(visible)]


def _visible(text: str, encodings: frozenset[Slip]) -> str:
    return skeleton(text, encodings).replace("\n", "")


def _line_end(text: str, place: Place) -> str:
    """Return the line end of new lines: that of the place if all its lines have the same, else that of the text."""
    here = text[place.start : place.end + 2]
    if "\n" in here and here.count("\r\n") in (0, here.count("\n")):
        return "\r\n" if "\r\n" in here else "\n"
    return "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"


def _deletion(text: str, place: Place, wanted: Reading, new: str, ending: str) -> tuple[int, int, str]:
    end = place.end
    around = len(split_breaks(wanted.gaps[0])) + len(split_breaks(wanted.gaps[-1])) > 2
    if around:
        for line_end in ("\r\n", "\n", "\r"):
            if text.startswith(line_end, end):
                end += len(line_end)
                break
    return place.start, end, ending * (len(split_breaks(new)) // 2)


def _absent_slips(wanted: Reading, there: Reading, new: str) -> set[Slip]:
    """Return the encodings that the passage has throughout, and the new text not at all."""
    absent: set[Slip] = set()
    encoded = {
        key: raw
        for raw, key, other in zip(wanted.raws, wanted.keys, there.raws, strict=True)
        if raw != other and len(raw) > 1 and raw[0] in "\\&"
    }
    plain = {key for key in encoded if key in wanted.raws}
    escaped_break = any("\\n" in gap for gap in wanted.gaps)
    if escaped_break and "\n" in new and not any("\n" in gap for gap in wanted.gaps[1:-1]):
        absent.add("escaped line ends")
    for key, raw in encoded.items():
        # The encoded forms contain an ampersand or a backslash themselves.
        bare = new.replace(raw, "")
        if key not in plain and key not in "&\\" and key in bare:
            escape: Slip = "escaped letters" if raw[1] == "u" else "escaped quotes"
            absent.add(escape if raw[0] == "\\" else "entities")
    return absent


class _Merger:
    def __init__(
        self,
        wanted: Reading,
        there: Reading,
        result: Reading,
        slips: frozenset[Slip],
        new_slips: frozenset[Slip],
        ending: str,
        *,
        within: bool,
        ends_within: bool,
    ) -> None:
        self._slips = slips
        self.step = 0
        self.following = ""
        self._ends_within = ends_within
        self._within = within
        self._ending = ending
        self._letters = Letters(wanted, there, slips)
        self._old = to_lines(wanted, wanted, escapes="escaped line ends" in slips)
        self._file = to_lines(there, wanted, escapes="escaped line ends" in slips)
        self._new = to_lines(result, result, escapes="escaped line ends" in new_slips)
        # The model wrote several blanks for one, also in the new text.
        self._has_longer_runs = any(
            len(old.before) > len(file.before) == 1
            for line, file_line in zip(self._old.lines, self._file.lines, strict=True)
            for old, file in zip(line.tokens, file_line.tokens, strict=True)
        )
        self._partners: list[int | None] = self._find_partners()
        self._check_escapes("escaped line ends" in new_slips)

    def merged(self) -> str:
        """Return the text that replaces the place.

        Raises:
            UncertainError: the indentation or another slip of the new text cannot be undone.
        """
        lines = [self._line(index) for index in range(len(self._new.lines))]
        self._indent(lines)
        if self._ends_within and self._new.lines[-1].trailing == self._old.lines[-1].trailing:
            # The blanks after the passage are not part of the place.
            lines[-1].trailing = ""
        lines[-1].trailing += self._added_tail()
        return "".join(
            "".join(line.blank_lines) + line.indentation + line.text + line.trailing + line.end for line in lines
        )

    def _added_tail(self) -> str:
        """Return the blank lines after the last line that are not around the passage as well."""
        added = max(0, len(self._new.tail) - len(self._old.tail))
        partner = self._partners[-1]
        follows = None if partner is None else partner + 1
        blanks: list[str] = []
        if follows is not None and follows < len(self._file.lines):
            if len(self._new.tail) and len(self._old.tail) > 1 and self._old.lines[follows].blank_lines:
                raise UncertainError("it is not certain which blank lines to keep")
            # The lines after the last one were deleted, but for blank ones.
            blanks = [blanks_of(blank) for blank in self._file.lines[follows].blank_lines]
        return "".join(self._ending + (blanks[index] if index < len(blanks) else "") for index in range(added))

    # --- lines ----------------------------------------------------------------------------------------------------

    def _find_partners(self) -> list[int | None]:
        """Return for each new line the index of the line of the passage that it keeps or replaces."""
        old, new = self._old.lines, self._new.lines
        partners: list[int | None] = [None] * len(new)
        old_keys, new_keys = [self._key(line) for line in old], [self._key(line) for line in new]
        for tag, i1, i2, j1, j2 in opcodes(old_keys, new_keys):
            if tag == "equal" or i2 - i1 == j2 - j1:
                for offset in range(j2 - j1):
                    partners[j1 + offset] = i1 + offset
            elif tag == "replace" and (i2 - i1) * (j2 - j1) <= 10_000:
                for i, j in similar_lines(old, new, range(i1, i2), range(j1, j2)):
                    partners[j] = i
        return partners

    def _key(self, line: Line) -> tuple[str, ...]:
        return tuple(self._blanks_key(token.before) + token.key for token in line.tokens)

    def _blanks_key(self, blanks: str) -> str:
        if "blanks beside punctuation" in self._slips:
            return ""
        if "special spaces" in self._slips:
            blanks = plain_blanks(blanks)
        return " " if blanks and "runs of blanks" in self._slips else blanks

    def _line(self, index: int) -> Line:
        new, partner = self._new.lines[index], self._partners[index]
        last = index + 1 == len(self._new.lines)
        if partner is None:
            tokens = [replace(token, raw=self._letters.undo(token)) for token in new.tokens]
            tokens = [replace(token, before=self._plain(token.before)) for token in tokens]
            return Line(
                self._blank_lines(index),
                new.indentation,
                tokens,
                "" if "trailing blanks" in self._slips else new.trailing,
                "" if last else self._ending,
            )
        old, file = self._old.lines[partner], self._file.lines[partner]
        ends_alike = last == (partner + 1 == len(self._old.lines))
        slipped = "trailing blanks" in self._slips
        trailing = file.trailing if slipped or new.trailing == old.trailing else new.trailing
        if slipped and len(new.text) > len(old.text) and new.text.startswith(old.text):
            # What is added to the line has the blanks of the file before it.
            trailing = ""
        return Line(
            self._blank_lines(index),
            new.indentation,
            self._tokens(old, file, new),
            trailing,
            file.end if ends_alike else "" if last else self._ending,
        )

    def _first_blank_lines(self, new: Line) -> list[str]:
        """Return the blank lines before the first line that are not around the passage as well."""
        added = max(0, len(new.blank_lines) - len(self._old.lines[0].blank_lines))
        partner = self._partners[0]
        if partner and new.blank_lines and not added and self._old.lines[partner].blank_lines:
            raise UncertainError("it is not certain which blank lines to keep")
        if partner and added and len(self._file.lines[partner].blank_lines) >= added:
            # The lines before the first one were deleted, but for blank ones.
            return self._file.lines[partner].blank_lines[-added:]
        return [self._ending] * added

    def _blank_lines(self, index: int) -> list[str]:
        """Return the blank lines before a new line: those of the file, if the passage has as many at this place.

        Raises:
            UncertainError: the passage lacks blank lines of the file, and it is not certain where they belong.
        """
        new, partner = self._new.lines[index], self._partners[index]
        if index == 0:
            return self._first_blank_lines(new)
        before = self._partners[index - 1]
        gaps: list[range] = []
        if before is not None and partner is not None and before < partner:
            gaps.append(range(before + 1, partner + 1))
        if partner:
            gaps.append(range(partner, partner + 1))
        if before is not None and before + 1 < len(self._old.lines):
            gaps.append(range(before + 1, before + 2))
        for gap in gaps:
            there = [blank for line in self._file.lines[gap.start : gap.stop] for blank in line.blank_lines]
            written = sum(len(line.blank_lines) for line in self._old.lines[gap.start : gap.stop])
            follows = before is not None and partner == before + 1
            if written != len(there) and not (follows and len(new.blank_lines) == written):
                raise UncertainError("it is not certain where the blank lines belong")
            if len(new.blank_lines) == written:
                return there
        slipped = {"blank lines", "trailing blanks"} & self._slips
        return [("" if slipped else blanks_of(blank)) + self._ending for blank in new.blank_lines]

    def _indent(self, lines: Sequence[Line]) -> None:
        """Give the new lines their indentation in the file.

        Raises:
            UncertainError: it is not certain.
        """
        if self._within:
            # The blanks before the passage are not part of the place.
            written = self._old.lines[0].indentation
            lines[0].indentation = lines[0].indentation.removeprefix(written)
        if "indentation" not in self._slips:
            return
        block = Block(
            [
                (plain_indentation(old), file.indentation)
                for old, file in zip(self._old.lines, self._file.lines, strict=True)
            ],
            [plain_indentation(line) for line in self._new.lines],
            [line.text for line in self._new.lines],
            self._partners,
            self.step,
            self.following,
            within=self._within,
        )
        last = "".join(token.key for token in self._old.lines[-1].tokens)
        if not re.search(r"\w", last) and closes_another_block(block.pairs):
            raise UncertainError("the indentation of its last line is that of another block")
        indentations = new_indentations(block)
        if indentations is None:
            raise UncertainError("the indentation of new_str is not certain")
        for line, indentation in zip(lines, indentations, strict=True):
            line.indentation = indentation

    # --- words ----------------------------------------------------------------------------------------------------

    def _tokens(self, old: Line, file: Line, new: Line) -> list[Token]:
        tokens: list[Token] = []
        for tag, i1, i2, j1, j2 in opcodes([t.key for t in old.tokens], [t.key for t in new.tokens]):
            if tag == "equal":
                for offset in range(i2 - i1):
                    tokens.append(
                        self._kept(old.tokens[i1 + offset], file.tokens[i1 + offset], new.tokens[j1 + offset])
                    )
            else:
                for index in range(j1, j2):
                    token = new.tokens[index]
                    before = self._plain(token.before)
                    if j2 - j1 == i2 - i1:
                        # As many words replace these: the blanks between them are kept.
                        before = self._before(old.tokens[i1 + index - j1], file.tokens[i1 + index - j1], token)
                    tokens.append(replace(token, raw=self._letters.undo(token), before=before))
        return tokens

    def _kept(self, old: Token, file: Token, new: Token) -> Token:
        return replace(file, before=self._before(old, file, new))

    def _before(self, old: Token, file: Token, new: Token) -> str:
        same = new.before == old.before
        if "runs of blanks" in self._slips and new.before and old.before:
            same = True
        return file.before if same else self._plain(new.before)

    def _plain(self, blanks: str) -> str:
        if "special spaces" in self._slips:
            blanks = plain_blanks(blanks)
        return " " if blanks and self._has_longer_runs else blanks

    def _check_escapes(self, decoded: bool) -> None:
        """Refuse new lines with half a string: an escaped line break may belong into the string."""
        if not decoded:
            return
        for line, partner in zip(self._new.lines, self._partners, strict=True):
            expected = _odd_quotes(self._old.lines[partner]) if partner is not None else (0, 0)
            if _odd_quotes(line) != expected:
                raise UncertainError("it is not certain which escapes in new_str are meant")


def _odd_quotes(line: Line) -> tuple[int, int]:
    keys = [token.key for token in line.tokens]
    return keys.count('"') % 2, keys.count("'") % 2
