"""Brackets and quotes, which fit whatever macros and rules a grammar does not know."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Final, TypeAlias

from msgspec import Struct

from jumpseat.tools.syntax.parsing import SyntaxProblem, point

_STRINGS: Final = rb"/\*(?:[^*]|\*(?!/))*+(?:\*/)?|\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+'"
_OF_C: Final = re.compile(
    rb"//[^\n]*+|(?:u8|[uUL])?R\"(?P<raw>\w*+)\(|\b\d[\w.']*+|"
    + _STRINGS
    + rb"|^[ \t]*+#[ \t]*+(?P<directive>\w++)(?:[^\n\\]|\\.)*+|(?P<bracket>[()\[\]{}])|(?P<quote>[\"'])",
    re.MULTILINE | re.DOTALL,
)
_OF_CSS: Final = re.compile(
    _STRINGS + rb"|url\([^()\"'\n]++\)|\\.|(?P<bracket>[()\[\]{}])|(?P<quote>[\"'])"
    rb"|(?P<raw>(?!))(?P<directive>(?!))",
    re.DOTALL,
)
_PAIRS: Final = {b")": b"(", b"]": b"[", b"}": b"{"}


class Signs(Struct):
    """The brackets and quotes of a text: what is opened more often than closed, and the first that does not fit.

    Directives of the preprocessor do not count. ``depends`` is whether they decide which brackets are there.
    """

    open: Counter[bytes]
    quotes: list[int]
    in_defines: int = 0
    conditions: int = 0
    unfit: re.Match[bytes] | None = None
    depends: bool = False


SignsOf: TypeAlias = Callable[[bytes], Signs]


def signs_of_c(data: bytes) -> Signs:
    return _signs(_OF_C, data)


def signs_of_css(data: bytes) -> Signs:
    return _signs(_OF_CSS, data)


def _signs(lexemes: re.Pattern[bytes], data: bytes) -> Signs:
    signs = Signs(Counter(), [])
    opened: list[re.Match[bytes]] = []
    depths: list[int] = []
    position = 0
    while (match := lexemes.search(data, position)) is not None:
        position = match.end()
        raw_string, directive, bracket = match["raw"], match["directive"], match["bracket"]
        if raw_string is not None:
            closing = b")" + raw_string + b'"'
            position = data.find(closing, position) + len(closing)
            if position < len(closing):
                signs.depends = True
                return signs
        elif directive is not None:
            if directive == b"define":
                signs.in_defines += sum(match[0].count(sign) for sign in b"([")
                signs.in_defines -= sum(match[0].count(sign) for sign in b")]")
            elif directive in (b"if", b"ifdef", b"ifndef"):
                depths.append(len(opened))
                signs.conditions += 1
            elif directive in (b"else", b"elif", b"endif") and depths:
                signs.depends |= len(opened) != depths[-1]
                if directive == b"endif":
                    depths.pop()
        elif bracket in _PAIRS:
            signs.open[_PAIRS[bracket]] -= 1
            if not opened or opened[-1]["bracket"] != _PAIRS[bracket]:
                wrong = opened[-1] if opened and bracket == b"}" else match
                signs.unfit = signs.unfit or wrong
            else:
                opened.pop()
        elif bracket:
            signs.open[bracket] += 1
            opened.append(match)
        elif match["quote"]:
            signs.quotes.append(match.start())
    signs.unfit = signs.unfit or (opened[-1] if opened else None)
    return signs


def unfit_sign(
    signs_of: SignsOf, before: bytes | None, after: bytes, rows: tuple[int, int]
) -> SyntaxProblem | None:
    """Return the bracket or quote without a partner that a change of some rows has brought."""
    if before is None:
        signs = signs_of(after)
        return None if signs.unfit is None or signs.depends else _unfit(after, signs.unfit.start("bracket"))
    begin, here, there = _changed(before, after, rows)
    if signs_fit(before, after, rows):
        return None
    old, new = signs_of(before), signs_of(after)
    if old.unfit is None and not old.depends:
        if new.unfit is not None and not new.depends:
            return _unfit(after, new.unfit.start("bracket"))
    elif old.conditions != new.conditions:
        return None
    elif old.open != new.open:
        local = signs_of(there).unfit
        if _repairs(old, new) and (not old.depends or (local is None and signs_of(here).unfit is not None)):
            return None
        return (
            SyntaxProblem(rows[0], 0, rows[0], "the brackets do not fit here")
            if local is None
            else _unfit(after, begin + local.start("bracket"))
        )
    if old.in_defines != new.in_defines:
        return SyntaxProblem(rows[0], 0, rows[0], "the brackets of this definition do not fit")
    if len(new.quotes) > len(old.quotes):
        for start in new.quotes:
            # Apostrophes may be in text that is no program.
            if begin <= start <= begin + len(there) and (not old.quotes or after[start : start + 1] == b'"'):
                row, column = point(after, start)
                return SyntaxProblem(row, column, row, "the string is not closed")
    return None


def _repairs(old: Signs, new: Signs) -> bool:
    """Return whether a change leaves fewer brackets open; not braces, if directives may be there to close them."""
    braces = old.depends and old.open[b"{"] != new.open[b"{"]
    return not braces and sum(map(abs, new.open.values())) < sum(map(abs, old.open.values()))


def signs_fit(before: bytes, after: bytes, rows: tuple[int, int]) -> bool:
    """Return whether some rows, which a change has replaced, have as many brackets and quotes open as before."""
    _, here, there = _changed(before, after, rows)
    return _counts(here) == _counts(there)


def _changed(before: bytes, after: bytes, rows: tuple[int, int]) -> tuple[int, bytes, bytes]:
    """Return where some rows begin, their text before a change, and after it."""
    lines, old_lines = after.split(b"\n"), before.split(b"\n")
    begin = sum(len(line) + 1 for line in lines[: rows[0]])
    end = len(old_lines) - (len(lines) - 1 - rows[1])
    return begin, b"\n".join(old_lines[rows[0] : end]), b"\n".join(lines[rows[0] : rows[1] + 1])


def _counts(text: bytes) -> list[int]:
    pairs = [text.count(opening) - text.count(closing) for closing, opening in _PAIRS.items()]
    return [*pairs, text.count(b'"') % 2, text.count(b"'") % 2]


def _unfit(data: bytes, start: int) -> SyntaxProblem:
    row, column = point(data, start)
    bracket = data[start : start + 1].decode()
    message = f"{bracket!r} is not closed" if bracket in "([{" else f"{bracket!r} closes nothing"
    return SyntaxProblem(row, column, row, message)
