"""Compare the syntax errors of a text before and after a change."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from jumpseat.tools.syntax.dialects import is_part, is_trailing_comma, without_templates
from jumpseat.tools.syntax.languages import LANGUAGES, Syntax, grammar, language_of
from jumpseat.tools.syntax.lexemes import signs_fit, signs_of_c, unfit_sign
from jumpseat.tools.syntax.parsing import MOST_ERRORS, SyntaxProblem, errors, parse
from jumpseat.tools.syntax.versions import Version, Versions, edited

LARGEST: Final = 256 * 1024
"""Larger texts are not parsed."""


def new_problems(
    name: str, before: bytes | None, after: bytes, versions: Versions | None = None
) -> list[SyntaxProblem]:
    """Return the syntax errors that a change of the file ``name`` has brought, in their order.

    ``before`` is ``None`` for a new file. ``versions`` has what was parsed before, and gets what is parsed now.
    In doubt there is no error: nothing is returned for dialects that the grammar does not know, for errors that
    have merely moved, and for texts that are too large.
    """
    language = language_of(name)
    if language is None or max(len(after), len(before or b"")) > LARGEST:
        return []
    # Scanners of grammars, which no limit ends, take very long for these.
    if b"\0" in after or b"\0" in (before or b""):
        return []
    change = _Change(name, LANGUAGES[language], _changed_rows(before, after), versions or Versions())
    new = change.with_templates(before, after) if change.syntax.in_templates else change.new(before, after)
    if change.syntax.signs_of is not None and before is not None:
        # What the grammar does not know may be in the same line.
        sign = unfit_sign(change.syntax.signs_of, before, after, change.rows)
        if sign is not None:
            return [_within(sign, change.rows)]
    lines = after.split(b"\n")
    return [
        _within(problem, change.rows)
        for problem in new
        if problem.certain or not _is_valid(name, problem, after, lines, change.syntax)
    ]


def prepare(name: str, data: bytes, versions: Versions, others: Versions | None = None) -> None:
    """Parse the file ``name``, of which changes may follow, unless that saves no time then.

    ``others`` may have it already.
    """
    language = language_of(name)
    if language is not None and len(data) <= LARGEST and b"\0" not in data:
        _Change(name, LANGUAGES[language], (0, 0), versions).prepare(data, others)


class _Change(Struct, frozen=True):
    """A change of rows of a file; ``versions`` are those that are parsed already."""

    name: str
    syntax: Syntax
    rows: tuple[int, int]
    versions: Versions

    def with_templates(self, before: bytes | None, after: bytes) -> list[SyntaxProblem]:
        """Return the new errors of a text that may be a template."""
        plain = without_templates(after)
        if before is None:
            # It is not known whether the text without the tags is in the language.
            return self.new(None, after) if plain == after and not is_part(after) else []
        plain_before = without_templates(before)
        if plain != after and not self.syntax.resumes and self._version(plain_before, self.syntax).found:
            return []
        return self.new(plain_before, plain)

    def new(self, before: bytes | None, after: bytes) -> list[SyntaxProblem]:
        """Return the new errors of a text: none if it has none in another language that shares the suffix."""
        language, *others = self._languages(before or b"", after)
        found = self._new_in(language, before, after)
        if found and any(self._version(after, other, before).found == [] for other in others):
            return []
        return found

    def prepare(self, data: bytes, others: Versions | None) -> None:
        """Parse the text before a change, unless ``others`` have it."""
        language = self._languages(data)[0]
        if language.errors is None and (others is None or others.find(self.name, language.package, data) is None):
            self._version(data, language)

    def _languages(self, *texts: bytes) -> list[Syntax]:
        """Return the languages of the suffix, the more probable one first."""
        syntax, other = self.syntax, self.syntax.otherwise
        if other is None:
            return [syntax]
        is_first = any(word in text for text in texts for word in syntax.words)
        return [syntax, other] if is_first else [other, syntax]

    def _new_in(self, syntax: Syntax, before: bytes | None, after: bytes) -> list[SyntaxProblem]:
        version = self._version(after, syntax, before)
        new = self._compared(syntax, before, after, version, base=after)
        if new and before is not None:
            # Only trees of the texts alone are certain.
            if version.partial and signs_fit(before, after, self.rows):
                version = self._version(after, syntax)
            new = self._compared(syntax, before, after, version)
        return new

    def _compared(
        self, syntax: Syntax, before: bytes | None, after: bytes, version: Version, base: bytes | None = None
    ) -> list[SyntaxProblem]:
        """Return the new errors of a version; ``base`` is a text whose tree is used to parse the text before."""
        found = version.found
        if found == []:
            return self._others(syntax, before, after, version)
        known = [] if before is None else self._version(before, syntax, base).found
        doubtful = found is None or known is None or bool(known) or before is None
        if syntax.macros and doubtful:
            # Macros of other files may be the reason of errors. Brackets and quotes are the same with any macros.
            error = unfit_sign(signs_of_c, before, after, self.rows)
            if error is not None or before is None:
                return [] if error is None else [error]
        if found is None or known is None or (syntax.macros and len(found) <= len(known)):
            return []
        new = _without_known(found, after.split(b"\n"), known, (before or b"").split(b"\n"))
        if syntax.macros and known:
            new = [problem for problem in new if self.rows[0] <= problem.row <= self.rows[1] + 1]
        # What is read without the tree is certain with other errors, too.
        return new or (self._others(syntax, before, after, version) if syntax.signs_of is not None else [])

    def _others(self, syntax: Syntax, before: bytes | None, after: bytes, version: Version) -> list[SyntaxProblem]:
        """Return the new errors that the grammar does not report."""
        if syntax.also is None or version.tree is None:
            return []
        found = list(islice(syntax.also(version.tree, after, self.rows), MOST_ERRORS))
        if not found or before is None:
            return found
        old = self._version(before, syntax, after)
        if (old.found and syntax.signs_of is None) or old.tree is None:
            return []
        known = list(islice(syntax.also(old.tree, before, _changed_rows(after, before)), MOST_ERRORS))
        return _without_known(found, after.split(b"\n"), known, before.split(b"\n"))

    def _version(self, data: bytes, syntax: Syntax, base: bytes | None = None) -> Version:
        """Return a text with the errors that the grammar reports.

        ``base`` is a text before it, whose tree is used, if there is one.
        """
        version = self.versions.find(self.name, syntax.package, data)
        if version is None or (version.partial and base is None):
            version = self._parsed(data, syntax, base)
            self.versions.note(self.name, syntax.package, version)
        return version

    def _parsed(self, data: bytes, syntax: Syntax, base: bytes | None) -> Version:
        if syntax.errors is not None:
            return Version(data, syntax.errors(data))
        known = None if base is None else self.versions.find(self.name, syntax.package, base)
        old = None if known is None else edited(known, data, *_common_ends(known.data, data))
        tree = parse(data, grammar(syntax), old)
        return Version(data, None if tree is None else errors(tree, data), tree, partial=old is not None)


def _without_known(
    found: Sequence[SyntaxProblem],
    lines: Sequence[bytes],
    known: Sequence[SyntaxProblem],
    known_lines: Sequence[bytes],
) -> list[SyntaxProblem]:
    """Return the errors of a text that were not there before: in an equal line, or there with other words."""
    exact = Counter(_line(problem, known_lines) for problem in known)
    new: list[SyntaxProblem] = []
    for problem in found:
        line = _line(problem, lines)
        if exact[line]:
            exact[line] -= 1
        else:
            new.append(problem)
    # Rows from the beginning and from the end, of which a change shifts one kind at most.
    places = Counter(
        (row, _shape(_line(problem, known_lines)))
        for problem in known
        for row in (problem.row, problem.row - len(known_lines))
    )
    return [
        problem
        for problem in new
        if not any(places[row, _shape(_line(problem, lines))] for row in (problem.row, problem.row - len(lines)))
    ]


def _shape(line: bytes) -> bytes:
    return re.sub(rb"\w+", b"w", line)


def _line(problem: SyntaxProblem, lines: Sequence[bytes]) -> bytes:
    return lines[problem.row].strip() if problem.row < len(lines) else b""


def _is_valid(name: str, problem: SyntaxProblem, data: bytes, lines: list[bytes], syntax: Syntax) -> bool:
    """Return whether an error is none, but something that the grammar does not know."""
    if syntax.suffixes[0] == ".json" and is_trailing_comma(name, data, problem, lines):
        return True
    text = b"\n".join([*lines[problem.row : problem.row + 2], problem.message.encode()])
    return syntax.gaps.search(text) is not None


def _changed_rows(before: bytes | None, after: bytes) -> tuple[int, int]:
    """Return the first and the last row of a text that differ from the text before; all rows of a new file."""
    if before is None:
        return 0, after.count(b"\n")
    start, end = _common_ends(before, after)
    return after.count(b"\n", 0, start), after.count(b"\n", 0, len(after) - end)


def _common_ends(before: bytes, after: bytes) -> tuple[int, int]:
    """Return how many bytes two texts have in common at their beginning, and behind that at their end."""
    start = _common(before, after)
    return start, _common(before[start:][::-1], after[start:][::-1])


def _common(one: bytes, other: bytes) -> int:
    """Return the length of the common beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def _within(problem: SyntaxProblem, rows: tuple[int, int]) -> SyntaxProblem:
    """Return an error at the changed rows, if the parser has noticed it elsewhere."""
    first, last = rows
    if first - 1 <= problem.row <= last + 1:
        return problem
    if problem.row < first and problem.end_row >= first:
        return replace(problem, row=first, column=0, end_row=first, message="the syntax is broken here")
    return replace(
        problem, row=last, column=0, end_row=last, message=f"{problem.message} in line {problem.row + 1}"
    )
