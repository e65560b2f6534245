"""What a narrower terminal does to what stands on it: lines that no longer fit take several rows."""

from __future__ import annotations

from collections.abc import Mapping

from prompt_toolkit.layout.screen import Screen


def reflows(environ: Mapping[str, str]) -> bool:
    """Whether the terminal breaks lines anew when its width changes: all do but a few, and tmux in these."""
    return bool(environ.get("TMUX")) or not (
        environ.get("XTERM_VERSION") or environ.get("STY") or environ.get("TERM") == "linux"
    )


def rows_added(screen: Screen, cursor_row: int, columns: int) -> int:
    """How many rows more the lines above the cursor take since the terminal has ``columns``."""
    return sum((_used(screen, row) - 1) // columns for row in range(cursor_row) if _used(screen, row) > columns)


def _used(screen: Screen, row: int) -> int:
    cells = screen.data_buffer[row]
    return max((at + cell.width for at, cell in cells.items() if cell.char.strip()), default=0)
