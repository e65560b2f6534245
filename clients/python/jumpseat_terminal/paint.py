"""Render Markdown, diffs, tool calls and notices as lines of coloured text for a given width.

Pure: no I/O. Text from models and tools is made safe for the terminal here.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from typing import Any, Final

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from jumpseat_protocol.safe import exact, one_line, safe
from jumpseat_protocol.visible import exact_line, without_padding
from jumpseat_terminal.markdown import TerminalMarkdown
from jumpseat_transcript.calls import main_argument
from jumpseat_transcript.words import count, duration

NARROW: Final = 60
DIFF_LINES: Final = 40
"""Maximum lines of a diff shown after the change was made; the rest is folded."""
OUTPUT_LINES: Final = 3
SHARES_WIDTH: Final = 72
"""Maximum width of the bar that shows parts of a whole, in cells."""
# Without backgrounds, because the terminal's own colours are unknown.
_THEME: Final = Theme({"markdown.code": "cyan", "markdown.code_block": "", "markdown.link_url": "dim underline"})
_TRAILING: Final = re.compile(r"(?<! )[ ]++((?:\x1b\[[0-9;]*m)*)$", re.MULTILINE)
_EMPTY_ENDS: Final = re.compile(r"\A(?:(?:\x1b\[[0-9;]*m)*\n)+|(?:\n(?:\x1b\[[0-9;]*m)*)+\Z")
_STYLES: Final = re.compile(r"\x1b\[[0-9;]*m")
_HUNK: Final = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


class Painter:
    """Renders for a terminal of ``width`` cells. Without ``colour``, only bold, dim and italic are used.

    ``more`` is what shows shortened items in full: a key or an option.
    """

    def __init__(self, width: int, *, colour: bool, more: str = "ctrl-o") -> None:
        self.width = max(width, 20)
        self._colour = colour
        self._more = more

    def lines(self, *things: RenderableType) -> str:
        """Render items below each other, without spaces at the ends of lines."""
        console = Console(
            file=io.StringIO(),
            width=self.width,
            force_terminal=True,
            color_system="standard",
            no_color=not self._colour,
            legacy_windows=False,
            highlight=False,
            markup=False,
            emoji=False,
            theme=_THEME,
        )
        with console.capture() as captured:
            for thing in things:
                console.print(thing)
        return _TRAILING.sub(r"\1", captured.get())

    # --- messages -----------------------------------------------------------------------------------------------

    def markdown(self, text: str) -> str:
        """Render a block of Markdown; links show their targets."""
        return _EMPTY_ENDS.sub("", self.lines(TerminalMarkdown(safe(text)))) + "\n"

    def prompt(self, text: str, attached: Sequence[str] = ()) -> str:
        """Render a prompt and the names of its attachments."""
        with_it = [Text(f"  + {one_line(', '.join(attached))}", "dim")] if attached else []
        return "\n" + self.lines(self._with_mark("❯ ", Text(safe(text).rstrip()), "bold"), *with_it)

    def reasoning(self, text: str) -> str:
        """Render reasoning in full."""
        return self.lines(self._with_mark("∴ ", Text(safe(text).strip()), "dim italic"))

    def folded_reasoning(self, text: str, seconds: float) -> str:
        """Render reasoning as one line: its duration in ``seconds`` and its length."""
        words = len(text.split())
        took = f" for {duration(seconds)}" if seconds >= 1 else ""
        return self.lines(Text(f"∴ thought{took}, {count(words, 'word')} ({self._more})", "dim"))

    def notice(self, text: str, style: str = "dim") -> str:
        return self.lines(Text(safe(text).rstrip(), style))

    def error(self, text: str) -> str:
        return self.lines(self._with_mark("✗ ", Text(safe(text).strip()), "red"))

    def warning(self, text: str) -> str:
        return self.lines(self._with_mark("! ", Text(safe(text).strip()), "yellow"))

    # --- tools --------------------------------------------------------------------------------------------------

    def tool(self, name: str, arguments: Any, note: str, *, failed: bool) -> str:
        """Render a finished call on one line: tool and main argument, and ``note``, a summary of the result."""
        return self.lines(self._call(name, arguments, note, "✗" if failed else "●", "red" if failed else "green"))

    def pending_call(self, name: str, about: str) -> str:
        """Render the heading of a call that needs permission: on one line, which nothing can continue."""
        heading = Text.assemble((exact_line(name), "bold"), f" {exact_line(about)}")
        return self.lines(self._with_mark("○ ", heading, ""))

    def _call(self, name: str, arguments: Any, note: str, mark: str, style: str) -> Text:
        note = one_line(note)
        label = one_line(name)
        left = self.width - cell_len(label) - 3
        note = fit(note, max(left // 2, 10))
        about = fit(shown_argument(arguments), left - cell_len(note) - 4) if arguments else ""
        text = Text.assemble((mark, style), " ", (label, "bold"), no_wrap=True, overflow="ellipsis")
        if about:
            text.append(f" {about}")
        if note:
            text.append(f"  {note}", "dim")
        return text

    def output(self, text: str, limit: int | None = OUTPUT_LINES) -> str:
        """Render the last ``limit`` lines of a tool's output, or all of it without a limit."""
        lines = safe(text).rstrip().split("\n")
        hidden = len(lines) - limit if limit is not None else 0
        shown = lines[-limit:] if hidden > 0 and limit is not None else lines
        if limit is not None:
            shown = [fit(line, self.width - 4) for line in shown]
        if hidden > 0:
            shown.insert(0, f"... {count(hidden, 'line')} above ({self._more})")
        return self.lines(Padding(Text("\n".join(shown), "dim"), (0, 0, 0, 4)))

    def command(self, text: str) -> str:
        """Render a command in full, exactly as it would run, with notes in place of long white space."""
        return self.lines(Padding(Text(without_padding(exact(text)).rstrip(), "bold cyan"), (0, 0, 0, 2)))

    def arguments(self, value: Any) -> str:
        """Render the arguments of a call in full."""
        text = json.dumps(value, ensure_ascii=False, indent=2)
        return self.lines(Padding(Text(without_padding(exact(text))), (0, 0, 0, 2)))

    def diff(self, text: str, limit: int | None = None) -> str:
        """Render a unified diff, with line numbers if there is room; in full without a ``limit``."""
        rows: list[Text] = []
        old = new = 0
        inside = False
        numbered = self.width >= NARROW
        for line in exact(text).rstrip("\n").split("\n"):
            if not inside and line.startswith(("--- ", "+++ ")):
                continue
            if found := _HUNK.match(line):
                old, new = int(found[1]), int(found[2])
                if inside:
                    rows.append(Text("  ...", "dim"))
                inside = True
                continue
            if line.startswith("\\"):
                continue
            kind, body = line[:1], without_padding(line[1:])
            number, style = (old, "red") if kind == "-" else (new, "green" if kind == "+" else "dim")
            old, new = old + (kind != "+"), new + (kind != "-")
            gutter = f"  {number:>4} " if numbered else "  "
            # Wrap with an indent: at the left margin, the rest could pass for another line of the diff.
            for piece in chop_cells(body, self.width - len(gutter) - 2) or [""]:
                rows.append(Text.assemble((gutter, "dim"), (f"{kind or ' '} {piece}", style)))
                gutter, kind = " " * len(gutter), " "
        if limit is not None and len(rows) > limit:
            rows[limit:] = [Text(f"  ... {count(len(rows) - limit, 'more line')} ({self._more})", "dim")]
        return self.lines(*rows) if rows else ""

    # --- tables -------------------------------------------------------------------------------------------------

    def table(self, rows: Sequence[Sequence[str]]) -> str:
        """Render rows of a name and descriptions; below each other on narrow terminals."""
        if self.width < NARROW:
            lines: list[RenderableType] = []
            for first, *others in rows:
                lines.append(Text(f"  {one_line(first)}", "bold"))
                lines += [Padding(Text(one_line(other), "dim"), (0, 0, 0, 4)) for other in others if other]
            return self.lines(*lines)
        table = Table.grid(padding=(0, 2))
        for _ in rows[0] if rows else ():
            table.add_column(overflow="fold")
        for first, *others in rows:
            table.add_row(Text(f"  {one_line(first)}", "bold"), *(Text(one_line(other)) for other in others))
        return self.lines(table)

    def wrapped(self, text: str) -> str:
        """Render text in full, on as many lines as it needs, without colours."""
        return without_styles(self.lines(Text(safe(text)))).rstrip("\n")

    def shares(self, parts: Sequence[tuple[str, int, str]]) -> str:
        """Render parts of a whole as a bar, and below it each part ``(label, size, colour)`` with its share.

        A part without a colour is empty space.
        """
        total = sum(size for _, size, _ in parts) or 1
        width = min(self.width - 4, SHARES_WIDTH)
        bar = Text("  ")
        done, drawn = 0, 0
        for _, size, colour in parts:
            done += size
            # Rounded from the left, so that the bar has its width; each part is at least one cell wide.
            cells = max(round(done / total * width) - drawn, 1)
            bar.append(("█" if colour else "░") * min(cells, width - drawn), colour or "dim")
            drawn = min(drawn + cells, width)
        rows = Table.grid(padding=(0, 2))
        rows.add_column()
        for _ in range(2):
            rows.add_column(justify="right")
        for label, size, colour in parts:
            name = Text.assemble(("  █ " if colour else "  ░ ", colour or "dim"), label)
            rows.add_row(name, f"{size:,}", Text(f"{size / total:.1%}", "dim"))
        return self.lines(bar, Text(), rows)

    def choice(self, mark: str, text: str) -> str:
        """Render a menu entry in full, without colours."""
        return without_styles(self.lines(self._with_mark(mark, Text(text), ""))).rstrip("\n")

    def _with_mark(self, mark: str, text: Text, style: str) -> Table:
        grid = Table.grid()
        grid.add_column(width=cell_len(mark), no_wrap=True)
        grid.add_column(overflow="fold")
        text.stylize(style)
        grid.add_row(Text(mark, style), text)
        return grid


def without_styles(text: str) -> str:
    """Return painted text without colours and other styles."""
    return _STYLES.sub("", text)


def fit(text: str, width: int) -> str:
    """Return ``text`` truncated to ``width`` cells, with an ellipsis if truncated."""
    if width < 1:
        return ""
    return text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"


def shown_argument(arguments: Any) -> str:
    """Return the most telling of a call's arguments, on one line."""
    return one_line(main_argument(arguments))
