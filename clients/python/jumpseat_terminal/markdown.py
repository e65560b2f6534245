"""Markdown for a terminal: Rich's, changed where it would leave out or cut off text.

Control characters are not filtered here: the caller passes safe text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, ListItem, Markdown, MarkdownElement, TableElement
from rich.padding import Padding
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text


class _Heading(Heading):
    """A heading aligned to the left, like the text."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        self.text.stylize("bold underline" if self.tag == "h1" else "bold")
        yield self.text


class _Code(CodeBlock):
    """Code without background and frame, so that it can be copied."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        yield Padding(Syntax(code, self.lexer_name, theme="ansi_dark", word_wrap=True), (0, 0, 0, 2))


class _Item(ListItem):
    """A list item numbered with a dot, as in the source."""

    def render_number(
        self, console: Console, options: ConsoleOptions, number: int, last_number: int
    ) -> RenderResult:
        width = len(str(last_number)) + 2
        grid = Table.grid(padding=(0, 1, 0, 0))
        grid.add_column(width=width, no_wrap=True)
        grid.add_column(overflow="fold")
        grid.add_row(Text(f"{number}.".rjust(width), "markdown.item.number"), self.elements)
        yield from console.render(grid, options)


class _Table(TableElement):
    """A table whose cells are wrapped, never cut off."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(box=box.SIMPLE, pad_edge=False, show_edge=False, collapse_padding=True)
        for cell in self.header.row.cells if self.header and self.header.row else ():
            heading = cell.content.copy()
            heading.stylize("bold")
            table.add_column(heading, overflow="fold")
        for row in self.body.rows if self.body else ():
            table.add_row(*(cell.content for cell in row.cells))
        yield table


class TerminalMarkdown(Markdown):
    """Markdown with HTML shown as text, since a terminal cannot render it, and images shown as links.

    Link definitions are shown too: references to them may be in a block that was printed before.
    """

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
        "list_item_open": _Item,
        "table_open": _Table,
    }

    def __init__(self, text: str) -> None:
        super().__init__("", hyperlinks=False)
        parser = MarkdownIt(options_update={"html": False}).enable(["strikethrough", "table"]).disable("reference")
        self.parsed = parser.parse(text)
        for token in self.parsed:
            if token.children:
                token.children = _without_pictures(token.children)


def _without_pictures(tokens: Sequence[Token]) -> list[Token]:
    found: list[Token] = []
    for token in tokens:
        if token.type != "image":
            found.append(token)
            continue
        found += [
            Token("link_open", "a", 1, attrs={"href": token.attrs.get("src", "")}),
            Token("text", "", 0, content=token.content or "image"),
            Token("link_close", "a", -1),
        ]
    return found
