"""Times in the wire's format."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import lru_cache
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
    return _iso_millisecond(int(seconds * 1000))


@lru_cache(maxsize=64)
def _iso_millisecond(millisecond: int) -> str:
    """Format a millisecond. Dozens of deltas of all sessions have the same one."""
    second, rest = divmod(millisecond, 1000)
    return f"{_iso_second(second)}.{rest:03d}Z"


@lru_cache(maxsize=4)
def _iso_second(second: int) -> str:
    """Format a second without a zone."""
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
