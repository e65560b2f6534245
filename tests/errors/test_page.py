"""The page of errors shows what the tests check."""

from __future__ import annotations

from pathlib import Path

from tests.errors.page import page


def test_the_page_is_up_to_date() -> None:
    written = Path(__file__).parents[2] / "docs" / "errors.md"
    assert written.read_text() == page(), "run python -m tests.errors > docs/errors.md"
