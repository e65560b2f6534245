"""Times as the wire writes them."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def utc_now() -> str:
    """Now, in ISO 8601 in UTC with milliseconds: ``2026-01-01T00:00:00.000Z``."""
    return iso_time(time.time())


def iso_time(seconds: float) -> str:
    """Seconds since 1970 in the same form."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
