"""Print finished text above the drawing of a prompt_toolkit application, which then belongs to the terminal."""

from __future__ import annotations

import os
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.layout.screen import Screen as DrawnScreen

from jumpseat_terminal.reflow import reflows, rows_added


class Printer:
    """Collects finished text, and prints it before the next drawing.

    Work in progress never appears without the text before it, and no text appears between a question and what the
    question is about: text that comes while a question is open waits for the answer.
    """

    def __init__(self) -> None:
        self._text: list[str] = []
        # Number of items in `_text` when the question appeared; `None` without a question.
        self._before_question: int | None = None
        self._drawn: tuple[DrawnScreen, int, int] | None = None
        self._reflows = reflows(os.environ)

    def write(self, text: str) -> None:
        """Add finished text."""
        self._text.append(text)

    def hold(self) -> None:
        """Let text that comes from now on wait for :meth:`release`."""
        self._before_question = len(self._text)

    def release(self) -> None:
        self._before_question = None

    def print(self, app: Application[Any]) -> None:
        """Print the text that is due. Called before each drawing."""
        self._erase_reflowed_rows(app)
        due = len(self._text) if self._before_question is None else self._before_question
        if due:
            text, self._text[:due] = "".join(self._text[:due]), []
            self._before_question = None if self._before_question is None else 0
            app.renderer.erase()
            app.output.write_raw(text)

    def finish(self, app: Application[Any]) -> None:
        """Print the text that came after the last drawing."""
        app.output.write_raw("".join(self._text))
        app.output.flush()

    def remember_drawing(self, app: Application[Any]) -> None:
        """Remember what is on the screen. Called after each drawing."""
        drawn = app.renderer.last_rendered_screen
        if drawn is not None:
            row = drawn.get_cursor_position(app.layout.current_window).y
            self._drawn = (drawn, row, app.output.get_size().columns)

    def _erase_reflowed_rows(self, app: Application[Any]) -> None:
        """Erase all rows of the last drawing: a narrower terminal has rewrapped them to more rows."""
        columns = app.output.get_size().columns
        if self._drawn is None or columns >= self._drawn[2] or not self._reflows:
            return
        drawn, row, _ = self._drawn
        self._drawn = None
        app.renderer.erase()
        if more := rows_added(drawn, row, columns):
            app.output.cursor_up(more)
            app.output.erase_down()
