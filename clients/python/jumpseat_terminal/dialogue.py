"""The questions of the screen: menus, searchable lists and lines. Decides what keys mean, and what is drawn.

A menu is answered in two steps: the key of an option or an arrow selects it, and enter takes the selected option.
Any other text that the user types or pastes is a draft of the next prompt. It answers nothing by itself; an option
that takes text can be given the draft, after a second enter. Pure: no I/O, no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
from prompt_toolkit.formatted_text import StyleAndTextTuples
from rich.cells import cell_len, set_cell_size

from jumpseat_protocol.safe import one_line
from jumpseat_terminal.paint import Painter, fit


@dataclass(frozen=True, slots=True)
class Option:
    """An answer. Typing ``key`` selects it; with ``takes_text``, the draft belongs to the answer.

    ``aside`` is shown behind the label in searchable lists, and is searched too.
    """

    label: str
    value: Any
    key: str = ""
    takes_text: bool = False
    aside: str = ""


@dataclass(slots=True)
class Question:
    """A question to the user. ``answer`` is ``None`` if the user dismisses the question.

    A question is not ``armed`` while the user is still typing the text that the question interrupted. It is
    ``settling`` as long as a key may have been meant for what was in its place before.
    """

    title: str
    armed: bool = True
    settling: bool = False
    done: anyio.Event = field(default_factory=anyio.Event)
    answer: Any = None

    def close(self, answer: Any = None) -> None:
        if not self.done.is_set():
            self.answer = answer
            self.done.set()


@dataclass(slots=True)
class Menu(Question):
    """A question with few answers, all of which are shown in full.

    ``moved`` is set by arrows, and unset by typing: an option that the user has not selected since then is not
    taken if there is a draft.
    """

    options: Sequence[Option] = ()
    index: int = 0
    moved: bool = False

    def selected(self, draft: str) -> int | None:
        """Return the number of the option that enter would take; ``None`` if the draft is other text."""
        if not draft or self.moved:
            return self.index
        return self._keyed(draft)

    def enter(self, draft: str) -> bool:
        """Take the selected option; return whether the draft was its key.

        If the draft is other text, select an option that takes text.
        """
        number = self.selected(draft)
        if number is not None:
            self.close(self.options[number].value)
            return not self.moved and self._keyed(draft) == number
        with_text = (at for at, option in enumerate(self.options) if option.takes_text)
        if (at := next(with_text, None)) is not None:
            self.index, self.moved = at, True
        return False

    def move(self, by: int, draft: str) -> None:
        at = self.selected(draft)
        self.index = (self.index if at is None else at + by) % len(self.options)
        self.moved = True

    def _keyed(self, draft: str) -> int | None:
        return next(
            (at for at, option in enumerate(self.options) if option.key and option.key == draft.lower()), None
        )

    def rows(self, painter: Painter, draft: str) -> StyleAndTextTuples:
        """Return the drawing: all options in full, because the user must see everything that is approved."""
        rows: StyleAndTextTuples = []
        selected = self.selected(draft)
        for number, option in enumerate(self.options):
            mark = f"{'❯' if number == selected else ' '} {option.key or ' '} "
            label = option.label
            if option.takes_text and draft and self._keyed(draft) is None:
                label = fit(f"{label}: {one_line(draft)}", painter.width - len(mark))
            rows.append(("class:chosen" if number == selected else "", painter.choice(mark, label) + "\n"))
        rows.append(("class:dim", fit(f"  {self._hint(draft, selected)}", painter.width)))
        return rows

    def _hint(self, draft: str, selected: int | None) -> str:
        if self.settling:
            return "one moment: the question is new"
        if selected is not None:
            return "enter takes it · esc" if draft else "↑↓ or a letter, then enter · esc"
        if any(option.takes_text for option in self.options):
            return "enter: answer with your text · ↑↓ · esc"
        return "your text stays a draft · ↑↓, enter · esc"


@dataclass(slots=True)
class Picker(Question):
    """A list that the user searches by typing."""

    options: Sequence[Option] = ()
    index: int = 0
    search: str = ""

    def matching(self) -> list[Option]:
        """Return the options that contain all words of the search."""
        words = self.search.lower().split()
        return [
            option
            for option in self.options
            if all(word in f"{option.label} {option.aside}".lower() for word in words)
        ]

    def type(self, text: str) -> None:
        self.search, self.index = self.search + " ".join(text.splitlines()), 0

    def erase(self) -> None:
        self.search, self.index = self.search[:-1], 0

    def move(self, by: int) -> None:
        total = len(self.matching())
        self.index = (self.index + by) % total if total else 0

    def enter(self) -> None:
        """Take the selected option, if any option matches."""
        if found := self.matching():
            self.close(found[self.index].value)

    def rows(self, painter: Painter, height: int) -> StyleAndTextTuples:
        """Return the drawing in at most ``height`` lines, with the selected option in view."""
        found = self.matching()
        room = max(height - 2, 3)
        first = max(0, min(self.index - room // 2, len(found) - room))
        rows: StyleAndTextTuples = [
            ("class:dim", "  search: "),
            ("", f"{fit(self.search, painter.width - 12)}▏\n"),
        ]
        shown = found[first : first + room]
        longest = max((cell_len(option.label) for option in shown), default=0)
        aside = max((cell_len(option.aside) for option in shown), default=0)
        aside = min(aside, max(painter.width - longest - 4, painter.width // 2 - 4))
        label = min(longest, painter.width - aside - 4)
        for number, option in enumerate(shown, first):
            chosen = number == self.index
            text = set_cell_size(fit(option.label, label), label) if option.aside else fit(option.label, label)
            rows.append(("class:chosen" if chosen else "", f"{'❯' if chosen else ' '} {text}"))
            rows.append(("class:dim", f"  {fit(option.aside, aside)}\n" if option.aside else "\n"))
        if not found:
            rows.append(("class:dim", "  no matches\n"))
        total = f"{len(found)} of {len(self.options)} · " if len(found) > room or self.search else ""
        rows.append(("class:dim", fit(f"  {total}type to search · ↑↓ enter · esc", painter.width)))
        return rows


@dataclass(slots=True)
class Line(Question):
    """A line to fill in. ``check`` returns what is wrong with a text, or ``None``. A ``secret`` is not shown."""

    secret: bool = False
    check: Callable[[str], str | None] | None = None
    problem: str = ""

    def enter(self, text: str) -> None:
        """Take the text, or show what is wrong with it."""
        self.problem = (self.check(text) if self.check else None) or ""
        if not self.problem:
            self.close(text)
