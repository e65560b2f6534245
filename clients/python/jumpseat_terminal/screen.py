"""The screen of ``chat``: an input line at the bottom, work in progress above it, and finished text scrolled up.

Handles keys and layout, independent of sessions. Built on one prompt_toolkit application, which redraws only what
changed; finished text is printed above it and then belongs to the terminal.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import anyio
from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, Filter
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import ConditionalContainer, HSplit, Layout, Window
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.processors import ConditionalProcessor, PasswordProcessor
from prompt_toolkit.output import ColorDepth, create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style

from jumpseat_terminal.asking import Asking
from jumpseat_terminal.dialogue import Line, Menu, Picker
from jumpseat_terminal.paint import Painter, fit
from jumpseat_terminal.printing import Printer

SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
TICK_S: Final = 0.15
CONFIRM_S: Final = 2.0
"""Seconds within which a second ctrl-c quits, if the first cancelled nothing or has not cancelled yet."""
SUGGESTIONS: Final = 8
"""Maximum number of suggestions with descriptions on the screen."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A completion of the last word of the prompt. Those with a description are shown below each other."""

    text: str
    about: str = ""


class ScreenDelegate(Protocol):
    """Supplies the screen's content and handles input. All methods are called synchronously and must not block."""

    def live_text(self, height: int) -> str:
        """Return the work in progress, painted, in at most ``height`` lines."""
        ...

    def activity(self) -> str:
        """Describe the current activity; empty when idle."""
        ...

    def mode(self) -> str:
        """Return the name of a mode that changes what happens without a question; empty for the usual mode."""
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

    def change_mode(self) -> None:
        """Change to the next mode."""
        ...

    def completions(self, text: str) -> tuple[int, list[Suggestion]]:
        """Return the start of the last word of ``text``, and its completions."""
        ...


class Screen:
    """The screen, one per process. Without ``colour``, nothing drawn or printed has colours."""

    def __init__(self, delegate: ScreenDelegate, *, colour: bool) -> None:
        self._delegate = delegate
        self._colour = colour
        self._printer = Printer()
        self.starting = True
        """Whether enter may arrive as a line feed, typed before the terminal was in the mode of an application."""
        self._interrupted_at = 0.0
        self._hint = ""
        self._completed: tuple[str, int, list[Suggestion]] = ("", 0, [])
        self._suggested = 0
        self._prompt = Buffer(multiline=True, history=InMemoryHistory(), on_text_changed=self._typed)
        self.asking = Asking(self._prompt, self._show_question)
        """The questions to the user."""
        hidden = ConditionalProcessor(PasswordProcessor("•"), self.asking.hiding)
        prompt_control = BufferControl(self._prompt)
        reply_control = BufferControl(self.asking.reply, input_processors=[hidden])
        self._prompt_window = Window(
            prompt_control, wrap_lines=True, dont_extend_height=True, get_line_prefix=self._prefix
        )
        self._reply_window = Window(
            reply_control, wrap_lines=True, dont_extend_height=True, get_line_prefix=self._prefix
        )
        asking, choosing, replying = self.asking.open, self.asking.choosing, self.asking.replying
        busy = Condition(lambda: bool(delegate.activity())) & ~asking
        drafted = Condition(lambda: bool(self._prompt.text))
        body = HSplit(
            [
                self._rows(self._live, Condition(lambda: bool(self._live_text()))),
                self._rows(lambda: " ", ~asking & ~busy),
                self._rows(self._progress, busy),
                self._rows(self._title, asking),
                self._rows(self._answers, asking & ~replying),
                ConditionalContainer(self._reply_window, replying),
                ConditionalContainer(self._prompt_window, ~asking | (choosing & drafted)),
                self._rows(self._footer, ~asking),
            ]
        )
        output = create_output()
        if isinstance(output, Vt100_Output):
            # The cursor position is not needed, and a late response of the terminal would be read as keys.
            output.enable_cpr = False
        keys = KeyBindings()
        self._bind(keys, asking)
        self.asking.bind(keys)
        self._app: Application[None] = Application(
            layout=Layout(body, focused_element=self._prompt_window),
            key_bindings=keys,
            style=Style.from_dict(
                {
                    "dim": "ansibrightblack" if colour else "",
                    "mode": "bold ansiyellow" if colour else "bold",
                    "chosen": "bold ansicyan" if colour else "bold",
                }
            ),
            color_depth=None if colour else ColorDepth.DEPTH_1_BIT,
            erase_when_done=True,
            min_redraw_interval=0.03,
            before_render=self._printer.print,
            after_render=self._printer.remember_drawing,
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
        self._printer.write(text)
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

    async def run(self) -> None:
        """Show the screen until the user leaves."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._tick)
            await self._app.run_async(set_exception_handler=False)
            tasks.cancel_scope.cancel()
        self._printer.finish(self._app)

    def _show_question(self) -> None:
        """Draw a question that has been asked, or what follows the one that has been answered."""
        if self.asking.question is not None:
            self._printer.hold()
        else:
            self._printer.release()
        replying = isinstance(self.asking.question, Line)
        self._app.layout.focus(self._reply_window if replying else self._prompt_window)
        self._app.invalidate()

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
        if not self._delegate.activity() or self.asking.question is not None:
            return ""
        return self._delegate.live_text(max(self._app.output.get_size().rows - 8, 2))

    def _live(self) -> ANSI:
        return ANSI("\n" + self._live_text())

    def _progress(self) -> StyleAndTextTuples:
        turn = SPINNER[int(time.monotonic() / TICK_S) % len(SPINNER)]
        return [("", "\n"), ("class:dim", self._fit(f"{turn} {self._delegate.activity()} · ctrl-c cancels"))]

    def _title(self) -> StyleAndTextTuples:
        question = self.asking.question
        title = self.painter().wrapped(question.title) if question else ""
        rows: StyleAndTextTuples = [("", "\n"), ("bold", title)]
        if isinstance(question, Line) and question.problem:
            rows.append(("", f"\n{self._fit(f'  {question.problem}')}"))
        return rows

    def _answers(self) -> StyleAndTextTuples:
        match self.asking.question:
            case Menu() as menu:
                return menu.rows(self.painter(), self._prompt.text)
            case Picker() as picker:
                return picker.rows(self.painter(), self._app.output.get_size().rows - 4)
            case _:
                return []

    def _footer(self) -> StyleAndTextTuples:
        if self._hint:
            return [("class:dim", self._fit(self._hint))]
        _, found = self._completions()
        if any(suggestion.about for suggestion in found):
            return self._suggestions(found)
        if found:
            return [("class:dim", self._fit("  ".join(suggestion.text for suggestion in found)))]
        mode, status = self._delegate.mode(), self._delegate.status_line()
        if not mode:
            return [("class:dim", self._fit(status))]
        return [("class:mode", mode), ("class:dim", self._fit(f" · {status}", less=len(mode)))]

    def _suggestions(self, found: Sequence[Suggestion]) -> StyleAndTextTuples:
        """Return the suggestions with their descriptions, and the selected one in view."""
        first = max(0, min(self._suggested - SUGGESTIONS // 2, len(found) - SUGGESTIONS))
        shown = found[first : first + SUGGESTIONS]
        width = max(len(suggestion.text) for suggestion in found) + 2
        rows: StyleAndTextTuples = []
        for number, suggestion in enumerate(shown, first):
            chosen = number == self._suggested
            text = f"{'❯' if chosen else ' '} {suggestion.text}".ljust(width + 2)
            rows.append(("class:chosen" if chosen else "", text))
            rows.append(("class:dim", f"{self._fit(suggestion.about, less=len(text))}\n"))
        more = f"{len(found)} in all · " if len(found) > len(shown) else ""
        return [*rows, ("class:dim", self._fit(f"  {more}tab completes · ↑↓ enter"))]

    def _prefix(self, line: int, wrapped: int) -> StyleAndTextTuples:
        mark = "❯ " if self.asking.question is None or isinstance(self.asking.question, Line) else "… "
        return [("bold", mark if line == 0 and wrapped == 0 else "  ")]

    def _fit(self, text: str, *, less: int = 0) -> str:
        return fit(text, self._app.output.get_size().columns - 1 - less)

    # --- keys ---------------------------------------------------------------------------------------------------

    def _typed(self, _buffer: Buffer) -> None:
        self._suggested = 0
        self.asking.typed()

    def _completions(self) -> tuple[int, list[Suggestion]]:
        """Return completions, computed once per text rather than per drawing: folders may have many files."""
        text = self._prompt.document.text_before_cursor
        if text != self._completed[0]:
            self._completed = (text, *self._delegate.completions(text))
        return self._completed[1:]

    def _bind(self, keys: KeyBindings, asking: Filter) -> None:
        starting = Condition(lambda: self.starting)
        suggesting = Condition(lambda: any(suggestion.about for suggestion in self._completions()[1])) & ~asking

        @keys.add("c-j", filter=~asking & starting)
        @keys.add("enter", filter=~asking)
        def _enter(event: KeyPressEvent) -> None:
            _, found = self._completions()
            if found and found[0].about and self._prompt.text.lower() not in {each.text for each in found}:
                self._complete(found[self._suggested].text)
            text = self._prompt.text.rstrip()
            self._interrupted_at, self._hint = 0.0, ""
            if text.strip():
                self._prompt.append_to_history()
                self._prompt.reset()
                self._delegate.submit(text)

        @keys.add("c-j", filter=~asking & ~starting)
        @keys.add("escape", "enter", filter=~asking)
        def _newline(event: KeyPressEvent) -> None:
            self._prompt.insert_text("\n")

        @keys.add("up", filter=suggesting)
        def _up(event: KeyPressEvent) -> None:
            self._suggested = (self._suggested - 1) % len(self._completions()[1])

        @keys.add("down", filter=suggesting)
        def _down(event: KeyPressEvent) -> None:
            self._suggested = (self._suggested + 1) % len(self._completions()[1])

        @keys.add("tab", filter=~asking)
        def _tab(event: KeyPressEvent) -> None:
            _, found = self._completions()
            if found and found[0].about:
                self._complete(found[self._suggested].text)
            elif found:
                self._complete(_common_start([suggestion.text for suggestion in found]), last=len(found) == 1)

        @keys.add("s-tab", filter=~asking)
        def _mode(event: KeyPressEvent) -> None:
            self._delegate.change_mode()

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

    def _complete(self, word: str, *, last: bool = True) -> None:
        """Complete the last word of the prompt; a space follows if it is the ``last`` step."""
        start, _ = self._completions()
        before, after = self._prompt.document.text_before_cursor, self._prompt.document.text_after_cursor
        # No space after a folder, so that the user can continue with its content.
        before = before[:start] + word + (" " if last and not word.endswith("/") else "")
        self._prompt.document = Document(before + after, len(before))

    def _interrupt(self) -> None:
        now = time.monotonic()
        again = now - self._interrupted_at < CONFIRM_S
        self._interrupted_at = now
        question, text = self.asking.question, self._prompt.text
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
