"""Compare the syntax errors of a text before and after a change."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from jumpseat.syntax.languages import LANGUAGES, Syntax, language_of
from jumpseat.syntax.parsing import SyntaxProblem, parse, problems

LARGEST: Final = 1024 * 1024
"""Larger texts are not parsed."""


def new_problems(name: str, before: bytes | None, after: bytes) -> list[SyntaxProblem]:
    """Return the syntax errors that a change of the file ``name`` has brought, those in the changed lines first.

    ``before`` is ``None`` for a new file. In doubt there is no error: nothing is returned for dialects that the
    grammar does not know, for errors that have merely moved, and for texts that are too large.
    """
    language = language_of(name)
    if language is None or max(len(after), len(before or b"")) > LARGEST:
        return []
    syntax = LANGUAGES[language]
    found = _problems(after, language)
    if not found or (syntax.foreign and re.search(syntax.foreign, after.decode("utf-8", "replace"))):
        return []
    known = [] if before is None else _problems(before, language)
    if known is None:
        return []
    lines = after.split(b"\n")
    new = _without_known(found, lines, known, (before or b"").split(b"\n"), syntax)
    return [problem for problem in new if not _is_gap(problem, lines, syntax)]


def _problems(data: bytes, language: str) -> list[SyntaxProblem] | None:
    tree = parse(data, language)
    found = None if tree is None else problems(tree)
    otherwise = LANGUAGES[language].otherwise
    return _problems(data, otherwise) if found and otherwise else found


def _without_known(
    found: Sequence[SyntaxProblem],
    lines: Sequence[bytes],
    known: Sequence[SyntaxProblem],
    known_lines: Sequence[bytes],
    syntax: Syntax,
) -> list[SyntaxProblem]:
    """Return the errors of a text that were not there before, in the same line or in one like it."""
    exact = Counter(_key(problem, known_lines) for problem in known)
    left: list[SyntaxProblem] = []
    for problem in found:
        key = _key(problem, lines)
        if exact[key]:
            exact[key] -= 1
        else:
            left.append(problem)
    shapes = Counter(map(_shape, exact.elements()))
    if syntax.macros:
        shapes = Counter({_shape(_key(problem, known_lines)): len(found) for problem in known})
    new: list[SyntaxProblem] = []
    for problem in left:
        shape = _shape(_key(problem, lines))
        if shapes[shape]:
            shapes[shape] -= 1
        else:
            new.append(problem)
    return new


def _key(problem: SyntaxProblem, lines: Sequence[bytes]) -> bytes:
    return lines[problem.row].strip() if problem.row < len(lines) else b""


def _shape(line: bytes) -> bytes:
    return re.sub(rb"\w+", b"w", line)


def _is_gap(problem: SyntaxProblem, lines: Sequence[bytes], syntax: Syntax) -> bool:
    """Return whether an error may be due to the grammar."""
    text = _key(problem, lines).decode("utf-8", "replace")
    return bool(syntax.gaps) and re.search(syntax.gaps, text) is not None
