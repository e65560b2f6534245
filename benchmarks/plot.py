"""Draw line charts with logarithmic axes as SVG, legible on light and dark pages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Final, TypeAlias

Points: TypeAlias = Sequence[tuple[float, float]]

WIDTH: Final = 720
HEIGHT: Final = 420
LEFT: Final = 76
RIGHT: Final = 150
TOP: Final = 48
BOTTOM: Final = 56

# The same order everywhere, so that a series keeps its colour. Both variants have a contrast of 4.5 to their page.
COLOURS: Final = (("#0550ae", "#79c0ff"), ("#b35900", "#ffa657"), ("#116329", "#7ee787"), ("#8250df", "#d2a8ff"))


class _Axis:
    """A logarithmic scale from a power of ten to a power of ten."""

    def __init__(self, values: Sequence[float], begin: float, end: float) -> None:
        self.low = math.floor(math.log10(min(values)))
        self.high = max(math.ceil(math.log10(max(values))), self.low + 1)
        self._begin, self._end = begin, end

    def place(self, value: float) -> float:
        part = (math.log10(value) - self.low) / (self.high - self.low)
        return round(self._begin + part * (self._end - self._begin), 1)

    def ticks(self) -> list[float]:
        return [10.0**power for power in range(self.low, self.high + 1)]


def write_chart(path: Path, title: str, x_label: str, y_label: str, series: Mapping[str, Points]) -> None:
    """Write a chart of ``series``, by name: points with coordinates above 0.

    A dashed line begins at the first point of each series and stays flat. The label of a series is its last value
    as a multiple of its first.
    """
    shown = {name: [(x, y) for x, y in points if x > 0 and y > 0] for name, points in series.items()}
    shown = {name: points for name, points in shown.items() if points}
    x_axis = _Axis([x for points in shown.values() for x, _ in points], LEFT, WIDTH - RIGHT)
    y_axis = _Axis([y for points in shown.values() for _, y in points], HEIGHT - BOTTOM, TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{_style(len(shown))}</style>",
        f'<rect class="page" width="{WIDTH}" height="{HEIGHT}"/>',
        _text(LEFT, 24, title, "title"),
        *_grid(x_axis, y_axis),
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, x_label, "middle"),
        f'<g transform="rotate(-90 18 {(TOP + HEIGHT - BOTTOM) / 2})">'
        + _text(18, (TOP + HEIGHT - BOTTOM) / 2, y_label, "middle")
        + "</g>",
    ]
    taken: list[float] = []
    for index, (name, points) in enumerate(shown.items()):
        placed = [(x_axis.place(x), y_axis.place(y)) for x, y in points]
        (first_x, first_y), (last_x, last_y) = placed[0], placed[-1]
        line = " ".join(f"{x},{y}" for x, y in placed)
        parts.append(f'<line class="s{index} flat" x1="{first_x}" y1="{first_y}" x2="{last_x}" y2="{first_y}"/>')
        parts.append(f'<polyline class="s{index} line" points="{line}"/>')
        parts += [
            f'<circle class="s{index} dot" cx="{x}" cy="{y}" r="3.5"><title>{escape(name)}: {given[0]:,.0f}, '
            f"{figure(given[1])}</title></circle>"
            for (x, y), given in zip(placed, points, strict=True)
        ]
        # Labels of series that end at the same height are moved apart.
        height = last_y + 4
        while any(abs(height - other) < 15 for other in taken):
            height += 15
        taken.append(height)
        label = f"{name} ({figure(points[-1][1] / points[0][1])}x)"
        parts.append(_text(last_x + 8, height, label, f"s{index} label"))
    parts.append("</svg>\n")
    path.write_text("\n".join(parts), encoding="utf-8")


def figure(value: float) -> str:
    """Return a number with two or three significant digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _grid(x_axis: _Axis, y_axis: _Axis) -> list[str]:
    parts: list[str] = []
    for value in x_axis.ticks():
        x = x_axis.place(value)
        parts.append(f'<line class="grid" x1="{x}" y1="{TOP}" x2="{x}" y2="{HEIGHT - BOTTOM}"/>')
        parts.append(_text(x, HEIGHT - BOTTOM + 18, f"{value:,g}", "middle tick"))
    for value in y_axis.ticks():
        y = y_axis.place(value)
        parts.append(f'<line class="grid" x1="{LEFT}" y1="{y}" x2="{WIDTH - RIGHT}" y2="{y}"/>')
        parts.append(_text(LEFT - 8, y + 4, f"{value:,g}", "end tick"))
    return parts


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x}" y="{y}">{escape(text)}</text>'


def _style(series: int) -> str:
    def colours(dark: int) -> str:
        return "".join(
            f".s{index}{{stroke:{COLOURS[index % len(COLOURS)][dark]}}}"
            f".s{index}.dot,.s{index}.label{{fill:{COLOURS[index % len(COLOURS)][dark]};stroke:none}}"
            for index in range(series)
        )

    return (
        "text{font:13px system-ui,sans-serif;fill:#1f2328}.title{font-weight:600;font-size:15px}"
        ".middle{text-anchor:middle}.end{text-anchor:end}.tick{font-size:11px}.page{fill:#fff}"
        ".grid{stroke:#d0d7de}.line{fill:none;stroke-width:2}.flat{stroke-width:1;stroke-dasharray:4 4;opacity:.7}"
        + colours(0)
        + "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.page{fill:#0d1117}.grid{stroke:#30363d}"
        + colours(1)
        + "}"
    )
