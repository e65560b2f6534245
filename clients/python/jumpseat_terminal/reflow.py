"""The rows that lines on the screen take after the terminal has become narrower."""

from __future__ import annotations

from collections.abc import Mapping

from prompt_toolkit.layout.screen import Screen


def reflows(environ: Mapping[str, str]) -> bool:
    """Return whether the terminal rewraps lines when its width changes: most do, and tmux always does."""
    return bool(environ.get("TMUX")) or not (
        environ.get("XTERM_VERSION") or environ.get("STY") or environ.get("TERM") == "linux"
    )


def rows_added(screen: Screen, cursor_row: int, columns: int) -> int:
    """Return the number of additional rows that the lines above the cursor take in ``columns`` columns."""
    return sum((_used(screen, row) - 1) // columns for row in range(cursor_row) if _used(screen, row) > columns)


def _used(screen: Screen, row: int) -> int:
    cells = screen.data_buffer[row]
    return max((at + cell.width for at, cell in cells.items() if cell.char.strip()), default=0)
