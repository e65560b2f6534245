"""Ask the user on the screen: one question at a time, with the keys that answer it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import anyio
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from jumpseat_terminal.dialogue import Line, Menu, Option, Picker, Question

PAUSE_S: Final = 0.6
"""Seconds without a key before keys answer a question that appeared while the user was typing, and seconds from the
appearance of a menu to its answer: a key may have been meant for what was there before."""


class Asking:
    """The open question. ``draft`` holds the draft of the next prompt; ``changed`` draws another question, or none.

    While a menu is open, the user types into ``draft``; see :class:`~jumpseat_terminal.dialogue.Menu`.
    """

    def __init__(self, draft: Buffer, changed: Callable[[], None]) -> None:
        self.question: Question | None = None
        self.reply = Buffer(multiline=False)
        self.open = Condition(lambda: self.question is not None)
        self.choosing = Condition(lambda: isinstance(self.question, Menu))
        self.replying = Condition(lambda: isinstance(self.question, Line))
        self.hiding = Condition(lambda: isinstance(self.question, Line) and self.question.secret)
        self._picking = Condition(lambda: isinstance(self.question, Picker))
        self._draft = draft
        self._changed = changed
        self._one_at_a_time = anyio.Lock()
        self._typed_at = 0.0
        # Whether the last key was text, and not the answer to a question.
        self._typing = False

    # --- questions ----------------------------------------------------------------------------------------------

    async def choose(self, title: str, options: Sequence[Option]) -> Any:
        """Let the user choose an option, and return its value; ``None`` if they dismiss the question.

        No option can be taken before the user can have seen the question. Cancelling the caller withdraws it.
        """
        return await self._ask(Menu(title, options=options, settling=True))

    async def pick(self, title: str, options: Sequence[Option], search: str = "") -> Any:
        """Let the user pick an option from a list that can be searched, and return its value, or ``None``."""
        picker = Picker(title, options=options, search=search)
        answer = await self._ask(picker)
        if answer is None and picker.search != search and not picker.matching():
            # Text that matches nothing was not meant as a search.
            self.add_to_draft(picker.search)
        return answer

    async def read_line(
        self,
        title: str,
        text: str = "",
        check: Callable[[str], str | None] | None = None,
        *,
        secret: bool = False,
    ) -> str | None:
        """Let the user enter a line, which is not shown if it is ``secret``; ``None`` if they dismiss the question.

        ``check`` returns what is wrong with a line, or ``None``. Cancelling the caller withdraws the question.
        """
        try:
            return await self._ask(Line(title, check=check, secret=secret), text)
        finally:
            # No later question has the text, with ↑ or by undoing.
            self.reply.reset()

    def take_draft(self) -> str:
        """Return the draft of the next prompt, and empty it."""
        text = self._draft.text
        self._draft.reset()
        return text

    def add_to_draft(self, text: str) -> None:
        """Add text to the draft of the next prompt, on a line of its own."""
        before = self._draft.text
        text = f"{before}\n{text}" if before else text
        self._draft.document = Document(text, len(text))

    async def _ask(self, question: Question, text: str = "") -> Any:
        async with self._one_at_a_time:
            paused = time.monotonic() - self._typed_at > PAUSE_S
            question.armed = not (self._draft.text and self._typing) or paused
            self.question = question
            self.reply.document = Document(text, len(text))
            self._changed()
            try:
                if question.settling:
                    await self._settle(question)
                await question.done.wait()
            finally:
                self.question = None
                self._changed()
            return question.answer

    async def _settle(self, question: Question) -> None:
        with anyio.move_on_after(PAUSE_S):
            await question.done.wait()
        question.settling = False
        self._changed()

    # --- keys ---------------------------------------------------------------------------------------------------

    def typed(self) -> None:
        """Note that the draft has changed."""
        self._typed_at, self._typing = time.monotonic(), True
        if isinstance(self.question, Menu):
            self.question.moved = False

    def bind(self, keys: KeyBindings) -> None:
        """Bind the keys that answer questions."""

        @keys.add("escape", filter=self.open, eager=True)
        def _escape(event: KeyPressEvent) -> None:
            assert self.question is not None
            self.question.close()
            self._typing = False

        @keys.add("enter", filter=self.replying)
        def _reply(event: KeyPressEvent) -> None:
            assert isinstance(self.question, Line)
            if self._is_armed(self.question):
                self.question.enter(self.reply.text)
                self._typing = False

        self._bind_menu(keys)
        self._bind_picker(keys)

    def _bind_menu(self, keys: KeyBindings) -> None:
        def menu() -> Menu:
            assert isinstance(self.question, Menu)
            return self.question

        def move(by: int) -> None:
            if self._is_armed(menu()):
                menu().move(by, self._draft.text)

        @keys.add("enter", filter=self.choosing, eager=True)
        def _take(event: KeyPressEvent) -> None:
            if event.key_processor.input_queue:
                # Text that was pasted into a terminal that does not mark it: people do not type this fast.
                self._draft.insert_text("\n")
            elif self._is_armed(menu()):
                if menu().enter(self._draft.text):
                    self._draft.reset()
                self._typing = False

        @keys.add("c-j", filter=self.choosing)
        def _newline(event: KeyPressEvent) -> None:
            self._draft.insert_text("\n")

        @keys.add("up", filter=self.choosing)
        @keys.add("c-p", filter=self.choosing)
        def _up(event: KeyPressEvent) -> None:
            move(-1)

        @keys.add("down", filter=self.choosing)
        @keys.add("c-n", filter=self.choosing)
        def _down(event: KeyPressEvent) -> None:
            move(1)

    def _bind_picker(self, keys: KeyBindings) -> None:
        def picker() -> Picker:
            assert isinstance(self.question, Picker)
            return self.question

        @keys.add("up", filter=self._picking)
        @keys.add("c-p", filter=self._picking)
        def _up(event: KeyPressEvent) -> None:
            picker().move(-1)

        @keys.add("down", filter=self._picking)
        @keys.add("c-n", filter=self._picking)
        def _down(event: KeyPressEvent) -> None:
            picker().move(1)

        @keys.add("enter", filter=self._picking, eager=True)
        def _take(event: KeyPressEvent) -> None:
            if event.key_processor.input_queue:
                picker().type(" ")
            elif self._is_armed(picker()):
                picker().enter()

        @keys.add("backspace", filter=self._picking)
        def _erase(event: KeyPressEvent) -> None:
            picker().erase()

        @keys.add(Keys.BracketedPaste, filter=self._picking, eager=True)
        def _paste(event: KeyPressEvent) -> None:
            picker().type(event.data)

        @keys.add(Keys.Any, filter=self._picking)
        def _key(event: KeyPressEvent) -> None:
            if event.data.isprintable():
                picker().type(event.data)

    def _is_armed(self, question: Question) -> bool:
        """Return whether a key may answer the question: not while the user is still typing something else."""
        now = time.monotonic()
        if question.settling:
            return False
        question.armed = question.armed or now - self._typed_at > PAUSE_S
        self._typed_at = now
        return question.armed
