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


def time_ago(time: str, now: datetime) -> str:
    """Format an ISO 8601 time as seen from ``now``: ``just now``, ``5 min ago``, ``3 h ago``, ``2 days ago``.

    After a week, and for times in the future, it is the date in the local time zone; as it is if invalid.
    """
    try:
        then = datetime.fromisoformat(time).astimezone()
    except (ValueError, OverflowError, OSError):
        return time
    minutes = int((now - then).total_seconds() // 60)
    if minutes < 0 or minutes >= 7 * 24 * 60:
        return then.strftime("%Y-%m-%d")
    if minutes < 60:
        return f"{minutes} min ago" if minutes else "just now"
    hours = minutes // 60
    return f"{hours} h ago" if hours < 24 else f"{count(hours // 24, 'day')} ago"


def line_count(text: str) -> str:
    """Count the lines of a text: ``3 lines``, or ``nothing``."""
    return count(len(text.rstrip("\n").split("\n")), "line") if text.strip() else "nothing"


def with_tilde(path: str) -> str:
    """Return ``path`` with ``~`` for the user's home folder."""
    home = str(Path.home())
    return f"~{path[len(home) :]}" if path == home or path.startswith(home + os.sep) else path
