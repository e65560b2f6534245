"""Compare the syntax errors of a text before and after a change."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Final

from msgspec.structs import replace

from jumpseat.syntax.dialects import bracket_error, is_trailing_comma, without_templates
from jumpseat.syntax.exact import all_errors
from jumpseat.syntax.languages import LANGUAGES, Syntax, grammar, language_of
from jumpseat.syntax.parsing import MOST_ERRORS, SyntaxProblem, errors, parse

LARGEST: Final = 256 * 1024
"""Larger texts are not parsed."""


def new_problems(name: str, before: bytes | None, after: bytes) -> list[SyntaxProblem]:
    """Return the syntax errors that a change of the file ``name`` has brought, in their order.

    ``before`` is ``None`` for a new file. In doubt there is no error: nothing is returned for dialects that the
    grammar does not know, for errors that have merely moved, and for texts that are too large.
    """
    language = language_of(name)
    if language is None or max(len(after), len(before or b"")) > LARGEST:
        return []
    # Scanners of grammars, which no limit ends, take very long for these.
    if b"\0" in after or b"\0" in (before or b""):
        return []
    syntax = LANGUAGES[language]
    rows = _changed_rows(before, after)
    new = _with_templates(before, after, syntax, rows) if syntax.in_templates else _new(before, after, syntax, rows)
    lines = after.split(b"\n")
    return [_within(problem, rows) for problem in new if not _is_valid(name, problem, after, lines, syntax)]


def _with_templates(
    before: bytes | None, after: bytes, syntax: Syntax, rows: tuple[int, int]
) -> list[SyntaxProblem]:
    """Return the new errors of a text that may be a template."""
    plain = without_templates(after)
    if before is None:
        # It is not known whether the text without the tags is in the language.
        return _new(None, after, syntax, rows) if plain == after else []
    plain_before = without_templates(before)
    if plain != after and _problems(plain_before, syntax):
        return []
    return _new(plain_before, plain, syntax, rows)


def _new(before: bytes | None, after: bytes, syntax: Syntax, rows: tuple[int, int]) -> list[SyntaxProblem]:
    found = _problems(after, syntax, rows)
    if found == []:
        return []
    known = _problems(before, syntax) if before is not None else []
    doubtful = found is None or known is None or bool(known) or before is None
    if syntax.macros and doubtful:
        # Macros of other files may be the reason of errors. Brackets are the same with any macros.
        error = bracket_error(after)
        if isinstance(error, SyntaxProblem) and (before is None or bracket_error(before) is False):
            return [error]
        if before is None:
            return []
    if found is None or known is None or (syntax.macros and len(found) <= len(known)):
        return []
    new = _without_known(found, after.split(b"\n"), known, (before or b"").split(b"\n"))
    if syntax.macros and known:
        new = [problem for problem in new if rows[0] <= problem.row <= rows[1] + 1]
    return new


def _problems(data: bytes, syntax: Syntax, rows: tuple[int, int] | None = None) -> list[SyntaxProblem] | None:
    """Return the errors of a text; those that the grammar does not report in ``rows`` only, if that is given.

    ``None`` means that the text takes too long to parse, or is in another language.
    """
    if syntax.first_error is not None:
        return all_errors(data, syntax.first_error)
    tree = parse(data, grammar(syntax))
    found = None if tree is None else errors(tree)
    if tree is not None and found == [] and syntax.also is not None:
        found = list(islice(syntax.also(tree, data, rows or (0, len(data))), MOST_ERRORS))
    return _problems(data, syntax.otherwise) if found != [] and syntax.otherwise else found


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
    start = _common(before, after)
    rest, old_rest = after[start:][::-1], before[start:][::-1]
    end = len(after) - _common(old_rest, rest)
    return after.count(b"\n", 0, start), after.count(b"\n", 0, end)


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
