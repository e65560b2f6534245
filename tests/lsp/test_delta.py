"""Which diagnostics a change has brought, and the edits of a rename."""

from __future__ import annotations

from pathlib import Path

import pytest
from lsprotocol import types

from jumpseat.lsp.delta import Diagnostic, Lines, brought, most_important
from jumpseat.lsp.documents import MOST_DIAGNOSTICS, MOST_OF_ALL, Documents
from jumpseat.lsp.text_edits import TextEdit, edited
from tests.fuzz.times import grows
from tests.support.cases import all_cases

BEFORE = "a\nb\nc\nd\n"


def found(line: int, message: str = "wrong", source: str = "x") -> Diagnostic:
    return Diagnostic(line, 0, message, source=source)


CASES: dict[str, tuple[str, list[Diagnostic], list[Diagnostic], list[int]]] = {
    "an old one in place": (BEFORE, [found(1)], [found(1)], []),
    "an old one below a new line": ("new\n" + BEFORE, [found(1), found(3)], [found(2), found(4)], []),
    "an old one below a deleted line": ("b\nc\nd\n", [found(3)], [found(2)], []),
    "an equal one elsewhere": (BEFORE + "e\n", [found(1)], [found(1), found(4)], [4]),
    "another message in place": (BEFORE, [found(1)], [found(1, "other")], [1]),
    "another source in place": (BEFORE, [found(1)], [found(1, source="y")], [1]),
    "an old one in a changed line": ("a\nB\nc\nd\n", [found(1)], [found(1)], []),
    "one more in changed lines": ("a\nB\nBB\nc\nd\n", [found(1)], [found(1), found(2)], [2]),
    "one that has left for another line": ("a\nB\nc\nd\n", [found(1)], [found(3)], [3]),
    "a line number in the message": ("new\n" + BEFORE, [found(3, "see line 2")], [found(4, "see line 3")], []),
    "one of an empty file": (BEFORE, [], [found(0)], [0]),
}


def test_only_new_diagnostics_are_brought() -> None:
    with all_cases() as case:
        for name, (after, old, new, lines) in CASES.items():
            with case(name):
                assert [one.line for one in brought(old, new, Lines(BEFORE, after))] == lines


def test_one_error_of_each_line_is_more_important_than_what_two_checkers_say_about_the_same_line() -> None:
    path = Path("a")
    warning = Diagnostic(0, 0, "unused", severity=2)
    twice = [found(1), found(1, "in other words", source="y"), found(1)]
    told = most_important([(path, one) for one in (warning, *twice, found(4), found(2))], 4)
    assert [(one.line, one.source) for _, one in told] == [(1, "x"), (4, "x"), (2, "x"), (1, "y")]


@pytest.mark.thorough
def test_the_time_grows_with_the_number_of_diagnostics() -> None:
    def compare(text: str) -> None:
        equal = [found(line) for line in range(len(text.splitlines()))]
        brought(equal, equal, Lines(text, text.upper()))

    assert not grows(compare, "", "a\n", "")


@pytest.mark.anyio
async def test_diagnostics_of_some_files_are_not_told_if_all_are_too_many(tmp_path: Path) -> None:
    documents = Documents(warnings=False)
    spot = types.Position(0, 0)
    for number in range(MOST_OF_ALL // MOST_DIAGNOSTICS + 1):
        many = [types.Diagnostic(types.Range(spot, spot), str(message)) for message in range(MOST_DIAGNOSTICS)]
        documents.push(tmp_path / str(number), None, many)
    told = await documents.take()
    assert len(told) == MOST_OF_ALL
    assert {path.name for path, _ in told} == {str(number) for number in range(MOST_OF_ALL // MOST_DIAGNOSTICS)}
    documents.forget(tmp_path / "0")
    documents.push(tmp_path / "new", None, [types.Diagnostic(types.Range(spot, spot), "wrong")])
    assert [(path.name, found.message) for path, found in await documents.take()] == [("new", "wrong")]


def test_edits_are_made_at_positions_in_utf_16_units() -> None:
    text = "x = '\U0001f600'; y\r\ny = 2\n"
    edits = [TextEdit((1, 0), (1, 1), "zz"), TextEdit((0, 10), (0, 11), "zz"), TextEdit((2, 0), (2, 0), "end")]
    assert edited(text, edits) == "x = '\U0001f600'; zz\r\nzz = 2\nend"


def test_many_edits_of_one_line_are_at_their_places() -> None:
    text = "a\U0001f600b" * 5000
    edits = [TextEdit((0, 4 * at), (0, 4 * at + 1), "A") for at in range(5000)]
    assert edited(text, edits[::-1]) == "A\U0001f600b" * 5000
    # In the middle of the pair of a character is behind it.
    assert edited(text[:3], [TextEdit((0, 2), (0, 2), "x"), TextEdit((0, 3), (0, 4), "y")]) == "a\U0001f600xy"


def test_edits_that_do_not_fit_are_refused() -> None:
    for edits in (
        [TextEdit((5, 0), (5, 1), "x")],
        [TextEdit((0, 0), (0, 2), "x"), TextEdit((0, 1), (0, 3), "y")],
        [TextEdit((1, 0), (0, 0), "x")],
    ):
        with pytest.raises(ValueError, match=r"no line|overlap"):
            edited("abc\ndef\n", edits)
