"""Draw the captures of ``test_gallery.py`` as pictures, for a dark and a light terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

from rich.ansi import AnsiDecoder
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from tests.terminal.terminal import CAPTURES

GALLERY: Final = CAPTURES / "gallery"
PAGES: Final = Path(__file__).parents[2] / "docs" / "pictures"
CELL: Final = (8.4, 17)
"""Width and height of a cell, in pixels."""
NO_BREAK: Final = "\u00a0\u00a0"
"""Two spaces that SVG does not join."""


@dataclass(frozen=True, slots=True)
class Theme:
    """The colours of a terminal: ``colours`` are the sixteen of ANSI."""

    background: str
    text: str
    colours: tuple[str, ...]


THEMES: Final[Mapping[str, Theme]] = {
    "dark": Theme(
        "#1e1e1e",
        "#d4d4d4",
        (
            *("#000000", "#cd3131", "#0dbc79", "#e5e510", "#2472c8", "#bc3fbc", "#11a8cd", "#e5e5e5"),
            *("#666666", "#f14c4c", "#23d18b", "#f5f543", "#3b8eea", "#d670d6", "#29b8db", "#ffffff"),
        ),
    ),
    "light": Theme(
        "#ffffff",
        "#333333",
        (
            *("#000000", "#cd3131", "#107c10", "#949800", "#0451a5", "#bc05bc", "#0598bc", "#555555"),
            *("#666666", "#cd3131", "#14ce14", "#b5ba00", "#0451a5", "#bc05bc", "#0598bc", "#a5a5a5"),
        ),
    ),
}


def picture(captures: Mapping[str, str], columns: int, theme: Theme) -> str:
    """Return an SVG with the captures below each other, each under its name, if it has one."""
    width, height = CELL
    rows: list[str] = []
    y = 0.0
    for name, capture in captures.items():
        if name:
            y += 2 * height
            rows.append(f'<text x="0" y="{y:g}" fill="{theme.colours[4]}" font-weight="bold">{escape(name)}</text>')
            y += height / 2
        # The decoder keeps the style from line to line, as a terminal does.
        for line in AnsiDecoder().decode(capture.rstrip("\n")):
            y += height
            rows += _runs(line, y, theme)
        y += height
    size = f'width="{columns * width:g}" height="{y + height:g}"'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="DejaVu Sans Mono, Menlo, monospace"'
        f' font-size="14" xml:space="preserve"><rect {size} fill="{theme.background}"/>'
    )
    return "\n".join([head, *rows, "</svg>\n"])


def _runs(line: Text, y: float, theme: Theme) -> list[str]:
    """Return the runs of a line that have one style."""
    console = Console(width=500, color_system="standard", force_terminal=True, legacy_windows=False)
    found: list[str] = []
    column = 0
    for segment in line.render(console, end=""):
        style = segment.style
        colour, extra = theme.text, ""
        if style is not None and not isinstance(style, str):
            if style.color is not None and style.color.number is not None and style.color.number < 16:
                colour = theme.colours[style.color.number]
            extra += ' font-weight="bold"' if style.bold else ""
            extra += ' font-style="italic"' if style.italic else ""
            extra += ' opacity="0.6"' if style.dim else ""
        if text := segment.text.strip():
            x = (column + cell_len(segment.text) - cell_len(segment.text.lstrip())) * CELL[0]
            length = cell_len(text) * CELL[0]
            attributes = f'x="{x:g}" y="{y:g}" textLength="{length:g}" fill="{colour}"{extra}'
            found.append(f"<text {attributes}>{escape(text).replace('  ', NO_BREAK)}</text>")
        column += cell_len(segment.text)
    return found


def pictures() -> dict[Path, str]:
    """Return the pictures by their files: one of all captures for each width and theme, and those in the README."""
    widths: dict[int, dict[str, str]] = {}
    for path in sorted(GALLERY.glob("*.ansi")):
        columns, _, state = path.stem.partition("-")
        widths.setdefault(int(columns), {})[state] = path.read_text()
    drawn = {
        GALLERY / f"chat-{columns}-{name}.svg": picture(captures, columns, theme)
        for columns, captures in widths.items()
        for name, theme in THEMES.items()
    }
    question = widths[80]["diff"].strip("\n")
    return drawn | {
        PAGES / f"terminal-{name}.svg": picture({"": question}, 80, theme) for name, theme in THEMES.items()
    }
