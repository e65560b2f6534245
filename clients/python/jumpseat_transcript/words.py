"""Numbers, durations, times and folders for people."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path


def count(number: int, thing: str) -> str:
    """Format a number with its noun: ``1 line``, ``1,200 lines``."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """Format a duration: ``12s``, ``3m 05s``."""
    whole = int(seconds)
    return f"{whole}s" if whole < 60 else f"{whole // 60}m {whole % 60:02}s"


def display_time(time: str) -> str:
    """Format an ISO 8601 time in the local time zone: ``2026-01-31 14:05``; as it is if invalid."""
    try:
        return datetime.fromisoformat(time).astimezone().strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return time


def line_count(text: str) -> str:
    """Count the lines of a text: ``3 lines``, or ``nothing``."""
    return count(len(text.rstrip("\n").split("\n")), "line") if text.strip() else "nothing"


def with_tilde(path: str) -> str:
    """Return ``path`` with ``~`` for the user's home folder."""
    home = str(Path.home())
    return f"~{path[len(home) :]}" if path == home or path.startswith(home + os.sep) else path
