"""The screen of ``chat``: an input line at the bottom, what is in progress above it, and all else scrolled by.

Knows keys and places, and nothing of sessions. Built on one prompt_toolkit application, which draws only what has
changed; finished text is printed above it and belongs to the terminal from then on.
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
TWICE_S: Final = 2.0
"""How soon after a ctrl-c that had nothing to cancel, or has not cancelled yet, another one leaves."""
CALM_S: Final = 0.6
"""Who was typing when a question came up did not mean these keys as its answer."""


@dataclass(frozen=True, slots=True)
class Option:
    """``key`` chooses it at once; ``value`` is what :meth:`Screen.choose` returns."""

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
        return [one for one in self.options if all(word in one.label.lower() for word in words)]


@dataclass(slots=True)
class _Line(_Question):
    check: Callable[[str], str | None] | None = None
    problem: str = ""


class Talk(Protocol):
    """What the screen asks of those behind it. ``entered`` runs as a task, the others are called in place."""

    def live(self, height: int) -> str: ...
    def doing(self) -> str: ...
    def standing(self) -> str: ...
    def entered(self, text: str) -> None: ...
    def interrupted(self) -> bool: ...
    def unfold(self) -> None: ...
    def completions(self, text: str) -> tuple[int, list[str]]: ...


class Screen:
    """One per process. ``colour`` of false holds for all that is drawn and printed."""

    def __init__(self, talk: Talk, *, colour: bool) -> None:
        self._talk = talk
        self._colour = colour
        self._text: list[str] = []
        # So much of the text was there when the question came up; the rest waits for its answer.
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
        busy = Condition(lambda: bool(talk.doing()) and self._question is None)
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
            # Where the cursor is need not be known, and an answer that comes late would be read as keys.
            output.enable_cpr = False
        self._app: Application[None] = Application(
            layout=Layout(body, focused_element=self._prompt_window),
            key_bindings=self._keys(asking, choosing, replying),
            style=Style.from_dict({"dim": "ansibrightblack" if colour else "", "chosen": "bold"}),
            color_depth=None if colour else ColorDepth.DEPTH_1_BIT,
            erase_when_done=True,
            min_redraw_interval=0.03,
            before_render=self._print,
            after_render=self._note_what_is_drawn,
            output=output,
        )
        # An escape key is told from what begins with one (alt-enter too) by what does not follow at once.
        self._app.ttimeoutlen = self._app.timeoutlen = 0.05

    # --- for those behind ---------------------------------------------------------------------------------------

    def painter(self) -> Painter:
        """For the width of the moment. The last column stays free: some terminals wrap there."""
        return Painter(self._app.output.get_size().columns - 1, colour=self._colour)

    def write(self, text: str) -> None:
        """Print finished text above the input."""
        self._text.append(text)
        self._app.invalidate()

    def refresh(self) -> None:
        """Draw what is in progress anew, soon."""
        self._app.invalidate()

    def remember(self, prompts: Sequence[str]) -> None:
        """Have the arrow up find these prompts."""
        for prompt in prompts:
            self._prompt.history.append_string(prompt)

    def clear(self) -> None:
        self._app.renderer.clear()

    def leave(self) -> None:
        if self._app.is_running and not self._app.is_done:
            self._app.exit()

    async def choose(self, title: str, options: Sequence[Option], *, searchable: bool = False) -> Any:
        """Let the user choose one; ``None`` where they would rather not. Cancelling takes the question away."""
        calm = not self._prompt.text or time.monotonic() - self._typed_at > CALM_S
        return await self._ask(_Choice(title, options=options, searchable=searchable, armed=calm))

    async def line(
        self, title: str, text: str = "", check: Callable[[str], str | None] | None = None
    ) -> str | None:
        """Let the user write a line; ``check`` says what is wrong with it. ``None`` where they would rather not."""
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
        """Show it until the user leaves."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._tick)
            await self._app.run_async(set_exception_handler=False)
            tasks.cancel_scope.cancel()
        # What came last belongs on the screen too.
        self._app.output.write_raw("".join(self._text))
        self._app.output.flush()

    def _print(self, _app: object = None) -> None:
        """Runs before each drawing, so that no drawing shows what is in progress without what came before it."""
        self._erase_what_was_reflowed()
        due = len(self._text) if self._question is None else self._before_question
        if due:
            text, self._text[:due] = "".join(self._text[:due]), []
            self._before_question = 0
            self._app.renderer.erase()
            self._app.output.write_raw(text)

    def _note_what_is_drawn(self, _app: object = None) -> None:
        drawn = self._app.renderer.last_rendered_screen
        if drawn is not None:
            row = drawn.get_cursor_position(self._app.layout.current_window).y
            self._drawn = (drawn, row, self._app.output.get_size().columns)

    def _erase_what_was_reflowed(self) -> None:
        """Whoever erases believes in the rows that were drawn: what a narrower terminal made of them is more."""
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
            if self._talk.doing() or self._hint:
                if self._hint and time.monotonic() - self._interrupted_at > TWICE_S:
                    self._hint = ""
                self.refresh()

    # --- what is drawn ------------------------------------------------------------------------------------------

    def _rows(self, text: Callable[[], Any], shown: Condition | Any) -> ConditionalContainer:
        window = Window(
            FormattedTextControl(text), dont_extend_height=True, wrap_lines=False, height=Dimension(min=1)
        )
        return ConditionalContainer(window, shown)

    def _live_text(self) -> str:
        if not self._talk.doing() or self._question is not None:
            return ""
        return self._talk.live(max(self._app.output.get_size().rows - 8, 2))

    def _live(self) -> ANSI:
        return ANSI("\n" + self._live_text())

    def _progress(self) -> StyleAndTextTuples:
        turn = SPINNER[int(time.monotonic() / TICK_S) % len(SPINNER)]
        return [("", "\n"), ("class:dim", self._fit(f"{turn} {self._talk.doing()} · ctrl-c cancels"))]

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
            # What is approved must be read: only lists to search in are cut.
            short = question.searchable
            text = self._fit(mark + option.label) if short else self.painter().choice(mark, option.label)
            rows.append(("class:chosen" if chosen else "", text + "\n"))
        if not options:
            rows.append(("class:dim", "  nothing fits\n"))
        more = f"{len(options)} in all · " if len(options) > room else ""
        rows.append(("class:dim", self._fit(f"  {more}↑↓ enter · esc")))
        return rows

    def _footer(self) -> StyleAndTextTuples:
        if self._hint:
            return [("class:dim", self._fit(self._hint))]
        _, found = self._completions()
        return [("class:dim", self._fit("  ".join(found) if found else self._talk.standing()))]

    def _prefix(self, line: int, wrapped: int) -> StyleAndTextTuples:
        return [("bold", "❯ " if line == 0 and wrapped == 0 else "  ")]

    def _fit(self, text: str) -> str:
        start, text = ("\n", text[1:]) if text.startswith("\n") else ("", text)
        return start + fit(text, self._app.output.get_size().columns - 1)

    # --- keys ---------------------------------------------------------------------------------------------------

    def _typed(self, _buffer: Buffer) -> None:
        self._typed_at = time.monotonic()

    def _completions(self) -> tuple[int, list[str]]:
        """Looked for once for each text, and not with each drawing: files may be many."""
        text = self._prompt.document.text_before_cursor
        if text != self._completed[0]:
            self._completed = (text, *self._talk.completions(text))
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
                self._talk.entered(text)

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
                # A folder is gone on with.
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
        def _unfold(event: KeyPressEvent) -> None:
            self._talk.unfold()

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
            """Pasted text answers no question."""

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
        """Whether a key is meant for the question: not while the user is still writing something else."""
        now = time.monotonic()
        question.armed = question.armed or now - self._typed_at > CALM_S
        self._typed_at = now
        return question.armed

    def _interrupt(self) -> None:
        now = time.monotonic()
        again = now - self._interrupted_at < TWICE_S
        self._interrupted_at = now
        question, text = self._question, self._prompt.text
        if question is not None:
            question.close()
        if again and (self._hint or self._talk.doing()):
            self.leave()
        elif self._talk.interrupted():
            self._hint = ""
        elif question is not None:
            self._interrupted_at = 0.0
        elif text:
            self._prompt.reset()
            self._interrupted_at = 0.0
        else:
            self._hint = "press ctrl-c again to leave"
        self.refresh()


def _common_start(words: Sequence[str]) -> str:
    first, last = min(words), max(words)
    length = next((at for at, char in enumerate(first) if char != last[at : at + 1]), len(first))
    return first[:length]
