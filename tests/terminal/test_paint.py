"""Rendered text is never cut off or left out, however narrow the terminal."""

from __future__ import annotations

import re

import pytest

from jumpseat_terminal.paint import Painter


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[\d;]*m", "", text)


def painted(markdown: str, width: int = 30) -> str:
    return plain(Painter(width, colour=False).markdown(markdown))


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("A vector<int> and <b>bold</b>.", "A vector<int> and <b>bold</b>.\n"),
        ("<details>\nhidden\n</details>", "<details> hidden </details>\n"),
        ("![a plot](plot.png) and more", "a plot (plot.png) and more\n"),
        ("[![badge](b.svg)](x) there", "badge (b.svg) (x) there\n"),
        ("see [1]\n\n[1]: http://x", "see [1]\n\n[1]: http://x\n"),
    ],
)
def test_markdown_that_a_terminal_cannot_render_is_shown_as_text(markdown: str, shown: str) -> None:
    assert painted(markdown) == shown


def test_image_in_a_long_line_cuts_nothing_off() -> None:
    words = "one two three four five six seven eight nine ten"
    assert painted(f"![picture](x.png) {words}").split() == ["picture", "(x.png)", *words.split()]


def test_table_cells_are_wrapped() -> None:
    shown = painted(f"| a | b |\n|---|---|\n| {'x' * 50} | y |")
    assert shown.count("x") == 50
    assert "…" not in shown


def test_list_items_keep_their_numbers() -> None:
    assert painted("9. nine\n10. ten is a text that is wrapped") == (
        "  9. nine\n 10. ten is a text that is\n     wrapped\n"
    )


def test_long_diff_line_is_wrapped_with_an_indent() -> None:
    diff = "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+" + "x" * 20
    assert plain(Painter(20, colour=False).diff(diff)) == f"  - old\n  + {'x' * 16}\n    xxxx\n"


def test_diff_line_that_looks_like_a_file_header_is_shown() -> None:
    diff = "--- a\n+++ b\n@@ -1,2 +1,1 @@\n--- drop everything\n+++ x\n"
    assert plain(Painter(60, colour=False).diff(diff)) == "     1 - -- drop everything\n     1 + ++ x\n"
