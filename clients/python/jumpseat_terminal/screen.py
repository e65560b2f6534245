"""The screen of ``chat``: an input line at the bottom, work in progress above it, and finished text scrolled up.

Handles keys and layout, independent of sessions. Built on one prompt_toolkit application, which redraws only what
changed; finished text is printed above it and then belongs to the terminal.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import anyio
from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import ConditionalContainer, HSplit, Layout, Window
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.screen import Screen as DrawnScreen
from prompt_toolkit.output import ColorDepth, create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style

from jumpseat_terminal.paint import Painter, fit
from jumpseat_terminal.reflow import reflows, rows_added

SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
TICK_S: Final = 0.15
CONFIRM_S: Final = 2.0
"""Seconds within which a second ctrl-c quits, if the first cancelled nothing or has not cancelled yet."""
PAUSE_S: Final = 0.6
"""Seconds without a key before keys answer a question that appeared while the user was typing."""


@dataclass(frozen=True, slots=True)
class Option:
    """An entry of a menu. ``key`` chooses it at once; :meth:`Screen.choose` returns ``value``."""

    label: str
    value: Any
    key: str = ""


@dataclass(slots=True)
class _Question:
    title: str
    done: anyio.Event = field(default_factory=anyio.Event)
    answer: Any = None

    def close(self, answer: Any = None) -> None:
        if not self.done.is_set():
            self.answer = answer
            self.done.set()


@dataclass(slots=True)
class _Choice(_Question):
    options: Sequence[Option] = ()
    index: int = 0
    searchable: bool = False
    search: str = ""
    armed: bool = False

    def matching(self) -> list[Option]:
        words = self.search.lower().split()
        return [option for option in self.options if all(word in option.label.lower() for word in words)]


@dataclass(slots=True)
class _Line(_Question):
    check: Callable[[str], str | None] | None = None
    problem: str = ""


class ScreenDelegate(Protocol):
    """Supplies the screen's content and handles input. All methods are called synchronously and must not block."""

    def live_text(self, height: int) -> str:
        """Return the work in progress, painted, in at most ``height`` lines."""
        ...

    def activity(self) -> str:
        """Describe the current activity; empty when idle."""
        ...

    def status_line(self) -> str:
        """Return the text of the last line."""
        ...

    def submit(self, text: str) -> None:
        """Handle a prompt or command that the user has entered."""
        ...

    def interrupt(self) -> bool:
        """Cancel the current activity; return whether there was one."""
        ...

    def expand(self) -> None:
        """Show the last shortened item in full."""
        ...

    def completions(self, text: str) -> tuple[int, list[str]]:
        """Return the start of the last word of ``text``, and its completions."""
        ...


class Screen:
    """The screen, one per process. Without ``colour``, nothing drawn or printed has colours."""

    def __init__(self, delegate: ScreenDelegate, *, colour: bool) -> None:
        self._delegate = delegate
        self._colour = colour
        self._text: list[str] = []
        # Number of items in `_text` when the question appeared; later items wait for the answer.
        self._before_question = 0
        self._drawn: tuple[DrawnScreen, int, int] | None = None
        self._reflows = reflows(os.environ)
        self._question: _Question | None = None
        self._one_at_a_time = anyio.Lock()
        self._interrupted_at = 0.0
        self._typed_at = 0.0
        self._hint = ""
        self._completed: tuple[str, int, list[str]] = ("", 0, [])
        self._prompt = Buffer(multiline=True, history=InMemoryHistory(), on_text_changed=self._typed)
        self._reply = Buffer(multiline=False)
        prompt_control, reply_control = BufferControl(self._prompt), BufferControl(self._reply)
        self._prompt_window = Window(
            prompt_control, wrap_lines=True, dont_extend_height=True, get_line_prefix=self._prefix
        )
        self._reply_window = Window(
            reply_control, wrap_lines=True, dont_extend_height=True, get_line_prefix=self._prefix
        )
        asking = Condition(lambda: self._question is not None)
        choosing = Condition(lambda: isinstance(self._question, _Choice))
        replying = Condition(lambda: isinstance(self._question, _Line))
        busy = Condition(lambda: bool(delegate.activity()) and self._question is None)
        body = HSplit(
            [
                self._rows(self._live, Condition(lambda: bool(self._live_text()))),
                self._rows(lambda: " ", ~asking & ~busy),
                self._rows(self._progress, busy),
                self._rows(self._title, asking),
                self._rows(self._menu, choosing),
                ConditionalContainer(self._reply_window, replying),
                ConditionalContainer(self._prompt_window, ~asking),
                self._rows(self._footer, ~asking),
            ]
        )
        output = create_output()
        if isinstance(output, Vt100_Output):
            # The cursor position is not needed, and a late response of the terminal would be read as keys.
            output.enable_cpr = False
        self._app: Application[None] = Application(
            layout=Layout(body, focused_element=self._prompt_window),
            key_bindings=self._keys(asking, choosing, replying),
            style=Style.from_dict({"dim": "ansibrightblack" if colour else "", "chosen": "bold"}),
            color_depth=None if colour else ColorDepth.DEPTH_1_BIT,
            erase_when_done=True,
            min_redraw_interval=0.03,
            before_render=self._print,
            after_render=self._remember_drawing,
            output=output,
        )
        # Seconds to wait after escape for the rest of a key sequence, alt-enter included.
        self._app.ttimeoutlen = self._app.timeoutlen = 0.05

    # --- for the delegate ---------------------------------------------------------------------------------------

    def painter(self) -> Painter:
        """Return a painter for the current width. The last column stays free: some terminals wrap there."""
        return Painter(self._app.output.get_size().columns - 1, colour=self._colour)

    def write(self, text: str) -> None:
        """Print finished text above the input."""
        self._text.append(text)
        self._app.invalidate()

    def refresh(self) -> None:
        """Redraw the work in progress soon."""
        self._app.invalidate()

    def add_history(self, prompts: Sequence[str]) -> None:
        """Add prompts to the input history."""
        for prompt in prompts:
            self._prompt.history.append_string(prompt)

    def clear(self) -> None:
        self._app.renderer.clear()

    def leave(self) -> None:
        if self._app.is_running and not self._app.is_done:
            self._app.exit()

    async def choose(self, title: str, options: Sequence[Option], *, searchable: bool = False) -> Any:
        """Let the user choose an option, and return its value; ``None`` if they dismiss the question.

        Cancelling the caller withdraws the question.
        """
        paused = not self._prompt.text or time.monotonic() - self._typed_at > PAUSE_S
        return await self._ask(_Choice(title, options=options, searchable=searchable, armed=paused))

    async def read_line(
        self, title: str, text: str = "", check: Callable[[str], str | None] | None = None
    ) -> str | None:
        """Let the user enter a line; ``None`` if they dismiss the question.

        ``check`` returns what is wrong with a line, or ``None``. Cancelling the caller withdraws the question.
        """
        return await self._ask(_Line(title, check=check), text)

    async def _ask(self, question: _Question, text: str = "") -> Any:
        async with self._one_at_a_time:
            self._question, self._before_question = question, len(self._text)
            if isinstance(question, _Line):
                self._reply.text, self._reply.cursor_position = text, len(text)
                self._app.layout.focus(self._reply_window)
            self._app.invalidate()
            try:
                await question.done.wait()
            finally:
                self._question = None
                self._app.layout.focus(self._prompt_window)
                self._app.invalidate()
            return question.answer

    async def run(self) -> None:
        """Show the screen until the user leaves."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._tick)
            await self._app.run_async(set_exception_handler=False)
            tasks.cancel_scope.cancel()
        # Print the text that came after the last drawing.
        self._app.output.write_raw("".join(self._text))
        self._app.output.flush()

    def _print(self, _app: object = None) -> None:
        """Print finished text before each drawing, so that work in progress never appears without it."""
        self._erase_reflowed_rows()
        due = len(self._text) if self._question is None else self._before_question
        if due:
            text, self._text[:due] = "".join(self._text[:due]), []
            self._before_question = 0
            self._app.renderer.erase()
            self._app.output.write_raw(text)

    def _remember_drawing(self, _app: object = None) -> None:
        drawn = self._app.renderer.last_rendered_screen
        if drawn is not None:
            row = drawn.get_cursor_position(self._app.layout.current_window).y
            self._drawn = (drawn, row, self._app.output.get_size().columns)

    def _erase_reflowed_rows(self) -> None:
        """Erase all rows of the last drawing: a narrower terminal has rewrapped them to more rows."""
        columns = self._app.output.get_size().columns
        if self._drawn is None or columns >= self._drawn[2] or not self._reflows:
            return
        drawn, row, _ = self._drawn
        self._drawn = None
        self._app.renderer.erase()
        if more := rows_added(drawn, row, columns):
            self._app.output.cursor_up(more)
            self._app.output.erase_down()

    async def _tick(self) -> None:
        while True:
            await anyio.sleep(TICK_S)
            if self._delegate.activity() or self._hint:
                if self._hint and time.monotonic() - self._interrupted_at > CONFIRM_S:
                    self._hint = ""
                self.refresh()

    # --- drawing ------------------------------------------------------------------------------------------------

    def _rows(self, text: Callable[[], Any], shown: Condition | Any) -> ConditionalContainer:
        window = Window(
            FormattedTextControl(text), dont_extend_height=True, wrap_lines=False, height=Dimension(min=1)
        )
        return ConditionalContainer(window, shown)

    def _live_text(self) -> str:
        if not self._delegate.activity() or self._question is not None:
            return ""
        return self._delegate.live_text(max(self._app.output.get_size().rows - 8, 2))

    def _live(self) -> ANSI:
        return ANSI("\n" + self._live_text())

    def _progress(self) -> StyleAndTextTuples:
        turn = SPINNER[int(time.monotonic() / TICK_S) % len(SPINNER)]
        return [("", "\n"), ("class:dim", self._fit(f"{turn} {self._delegate.activity()} · ctrl-c cancels"))]

    def _title(self) -> StyleAndTextTuples:
        question = self._question
        title = question.title if question else ""
        rows: StyleAndTextTuples = [("", "\n"), ("bold", self._fit(title))]
        if isinstance(question, _Choice) and question.searchable:
            rows.append(("class:dim", self._fit(f"\n  search: {question.search}▏")))
        if isinstance(question, _Line) and question.problem:
            rows.append(("", self._fit(f"\n  {question.problem}")))
        return rows

    def _menu(self) -> StyleAndTextTuples:
        question = self._question
        if not isinstance(question, _Choice):
            return []
        options = question.matching()
        room = max(self._app.output.get_size().rows - 7, 3)
        first = max(0, min(question.index - room // 2, len(options) - room))
        rows: StyleAndTextTuples = []
        for number, option in enumerate(options[first : first + room], first):
            chosen = number == question.index
            key = f"{option.key} " if option.key else ""
            mark = f"{'❯' if chosen else ' '} {key}"
            # Only entries of searchable lists are truncated: users must see all that they approve.
            short = question.searchable
            text = self._fit(mark + option.label) if short else self.painter().choice(mark, option.label)
            rows.append(("class:chosen" if chosen else "", text + "\n"))
        if not options:
            rows.append(("class:dim", "  no matches\n"))
        more = f"{len(options)} in total · " if len(options) > room else ""
        rows.append(("class:dim", self._fit(f"  {more}↑↓ enter · esc")))
        return rows

    def _footer(self) -> StyleAndTextTuples:
        if self._hint:
            return [("class:dim", self._fit(self._hint))]
        _, found = self._completions()
        return [("class:dim", self._fit("  ".join(found) if found else self._delegate.status_line()))]

    def _prefix(self, line: int, wrapped: int) -> StyleAndTextTuples:
        return [("bold", "❯ " if line == 0 and wrapped == 0 else "  ")]

    def _fit(self, text: str) -> str:
        start, text = ("\n", text[1:]) if text.startswith("\n") else ("", text)
        return start + fit(text, self._app.output.get_size().columns - 1)

    # --- keys ---------------------------------------------------------------------------------------------------

    def _typed(self, _buffer: Buffer) -> None:
        self._typed_at = time.monotonic()

    def _completions(self) -> tuple[int, list[str]]:
        """Return completions, computed once per text rather than per drawing: folders may have many files."""
        text = self._prompt.document.text_before_cursor
        if text != self._completed[0]:
            self._completed = (text, *self._delegate.completions(text))
        return self._completed[1:]

    def _keys(self, asking: Condition, choosing: Condition, replying: Condition) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("enter", filter=~asking)
        def _enter(event: KeyPressEvent) -> None:
            text = self._prompt.text
            self._interrupted_at, self._hint = 0.0, ""
            if text.strip():
                self._prompt.append_to_history()
                self._prompt.reset()
                self._delegate.submit(text)

        @keys.add("c-j", filter=~asking)
        @keys.add("escape", "enter", filter=~asking)
        def _newline(event: KeyPressEvent) -> None:
            self._prompt.insert_text("\n")

        @keys.add("tab", filter=~asking)
        def _tab(event: KeyPressEvent) -> None:
            start, found = self._completions()
            if found:
                before, after = self._prompt.document.text_before_cursor, self._prompt.document.text_after_cursor
                word = found[0] if len(found) == 1 else _common_start(found)
                # No space after a folder, so that the user can continue with its content.
                end = " " if len(found) == 1 and not word.endswith("/") else ""
                before = before[:start] + word + end
                self._prompt.document = Document(before + after, len(before))

        @keys.add("c-d", filter=~asking)
        def _end(event: KeyPressEvent) -> None:
            if not self._prompt.text:
                self.leave()
            else:
                self._prompt.delete()

        @keys.add("c-o", filter=~asking)
        def _expand(event: KeyPressEvent) -> None:
            self._delegate.expand()

        @keys.add("c-l")
        def _redraw(event: KeyPressEvent) -> None:
            self._app.renderer.clear()

        @keys.add("c-c", eager=True)
        @keys.add(Keys.SIGINT)
        def _interrupt(event: KeyPressEvent) -> None:
            self._interrupt()

        @keys.add("escape", filter=asking, eager=True)
        def _escape(event: KeyPressEvent) -> None:
            assert self._question is not None
            self._question.close()

        @keys.add("enter", filter=replying)
        def _reply(event: KeyPressEvent) -> None:
            question = self._question
            assert isinstance(question, _Line)
            question.problem = (question.check(self._reply.text) if question.check else None) or ""
            if not question.problem:
                question.close(self._reply.text)

        self._choice_keys(keys, choosing)
        return keys

    def _choice_keys(self, keys: KeyBindings, choosing: Condition) -> None:
        def choice() -> _Choice:
            assert isinstance(self._question, _Choice)
            return self._question

        def move(by: int) -> None:
            total = len(choice().matching())
            choice().index = (choice().index + by) % total if total else 0

        @keys.add("up", filter=choosing)
        @keys.add("c-p", filter=choosing)
        def _up(event: KeyPressEvent) -> None:
            move(-1)

        @keys.add("down", filter=choosing)
        @keys.add("c-n", filter=choosing)
        def _down(event: KeyPressEvent) -> None:
            move(1)

        @keys.add("enter", filter=choosing, eager=True)
        def _take(event: KeyPressEvent) -> None:
            found = choice().matching()
            if found and (choice().searchable or self._armed(choice())):
                choice().close(found[choice().index].value)

        @keys.add("backspace", filter=choosing)
        def _shorten(event: KeyPressEvent) -> None:
            choice().search, choice().index = choice().search[:-1], 0

        @keys.add(Keys.BracketedPaste, filter=choosing, eager=True)
        def _paste(event: KeyPressEvent) -> None:
            """Ignore pasted text while a question is open."""

        @keys.add(Keys.Any, filter=choosing)
        def _key(event: KeyPressEvent) -> None:
            question = choice()
            if question.searchable:
                if event.data.isprintable():
                    question.search, question.index = question.search + event.data, 0
                return
            if not self._armed(question):
                return
            for option in question.options:
                if option.key and option.key == event.data.lower():
                    question.close(option.value)
                    return

    def _armed(self, question: _Choice) -> bool:
        """Return whether a key may answer the question: not while the user is still typing something else."""
        now = time.monotonic()
        question.armed = question.armed or now - self._typed_at > PAUSE_S
        self._typed_at = now
        return question.armed

    def _interrupt(self) -> None:
        now = time.monotonic()
        again = now - self._interrupted_at < CONFIRM_S
        self._interrupted_at = now
        question, text = self._question, self._prompt.text
        if question is not None:
            question.close()
        if again and (self._hint or self._delegate.activity()):
            self.leave()
        elif self._delegate.interrupt():
            self._hint = ""
        elif question is not None:
            self._interrupted_at = 0.0
        elif text:
            self._prompt.reset()
            self._interrupted_at = 0.0
        else:
            self._hint = "press ctrl-c again to quit"
        self.refresh()


def _common_start(words: Sequence[str]) -> str:
    first, last = min(words), max(words)
    length = next((at for at, char in enumerate(first) if char != last[at : at + 1]), len(first))
    return first[:length]
