"""The screen of ``chat``: an input line at the bottom, what is in progress above it, and all else scrolled by.

Knows keys and places, and nothing of sessions. Built on one prompt_toolkit application, which draws only what has
changed; finished text is printed above it and belongs to the terminal from then on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import anyio
from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import ConditionalContainer, HSplit, Layout, Window
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.output import ColorDepth, create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style

from jumpseat_terminal.paint import Painter, fit

SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
TICK_S: Final = 0.15
TWICE_S: Final = 2.0
"""How soon after the first ctrl-c the second one leaves."""
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
    def commands(self, start: str) -> list[str]: ...


class Screen:
    """One per process. ``colour`` of false holds for all that is drawn and printed."""

    def __init__(self, talk: Talk, *, colour: bool) -> None:
        self._talk = talk
        self._colour = colour
        self._text: list[str] = []
        self._question: _Question | None = None
        self._one_at_a_time = anyio.Lock()
        self._interrupted_at = 0.0
        self._typed_at = 0.0
        self._hint = ""
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
            output=output,
        )
        # An escape key is told from the sequences that begin with one by what does not follow.
        self._app.ttimeoutlen = 0.05

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
            self._question = question
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
        if self._text:
            text, self._text[:] = "".join(self._text), []
            self._app.renderer.erase()
            self._app.output.write_raw(text)

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
        found = self._matches()
        return [("class:dim", self._fit("  ".join(found) if found else self._talk.standing()))]

    def _prefix(self, line: int, wrapped: int) -> StyleAndTextTuples:
        return [("bold", "❯ " if line == 0 and wrapped == 0 else "  ")]

    def _fit(self, text: str) -> str:
        start, text = ("\n", text[1:]) if text.startswith("\n") else ("", text)
        return start + fit(text, self._app.output.get_size().columns - 1)

    # --- keys ---------------------------------------------------------------------------------------------------

    def _typed(self, _buffer: Buffer) -> None:
        self._typed_at = time.monotonic()

    def _matches(self) -> list[str]:
        text = self._prompt.text
        return self._talk.commands(text) if text.startswith("/") and " " not in text and "\n" not in text else []

    def _keys(self, asking: Condition, choosing: Condition, replying: Condition) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("enter", filter=~asking)
        def _enter(event: KeyPressEvent) -> None:
            text = self._prompt.text
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
            found = self._matches()
            if len(found) == 1:
                self._prompt.text = found[0] + " "
            elif found:
                self._prompt.text = _common_start(found)
            self._prompt.cursor_position = len(self._prompt.text)

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
        if again:
            self.leave()
        elif self._talk.interrupted() or question is not None:
            self._hint = ""
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
