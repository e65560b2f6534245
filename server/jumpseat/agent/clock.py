"""Times in the wire's format."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol

import anyio


class Clock(Protocol):
    """The time, and waiting for it."""

    def now(self) -> float:
        """Return the seconds since the Unix epoch."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class SystemClock:
    """The clock of the system."""

    def now(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)


def utc_now() -> str:
    """Return the current time in UTC as ISO 8601 with milliseconds: ``2026-01-01T00:00:00.000Z``."""
    return iso_time(time.time())


def iso_time(seconds: float) -> str:
    """Format seconds since the Unix epoch like :func:`utc_now`."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
