"""Times in the wire's format."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def utc_now() -> str:
    """Return the current time in UTC as ISO 8601 with milliseconds: ``2026-01-01T00:00:00.000Z``."""
    return iso_time(time.time())


def iso_time(seconds: float) -> str:
    """Format seconds since the Unix epoch like :func:`utc_now`."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
