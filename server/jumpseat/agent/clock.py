"""Times in the wire's format, and ids."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import lru_cache
from random import SystemRandom
from typing import Final, Protocol

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


def local_day(seconds: float) -> str:
    """Return the day of the local calendar at a time in seconds since the Unix epoch: ``2026-01-31``."""
    return time.strftime("%Y-%m-%d", time.localtime(seconds))


@lru_cache(maxsize=64)
def _iso_millisecond(millisecond: int) -> str:
    """Format a millisecond. Dozens of deltas of all sessions have the same one."""
    second, rest = divmod(millisecond, 1000)
    return f"{_iso_second(second)}.{rest:03d}Z"


@lru_cache(maxsize=4)
def _iso_second(second: int) -> str:
    """Format a second without a zone."""
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")


_VARIANT: Final = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}
_DIGITS: Final = 32
_IDS_PER_CALL: Final = 256


class _RandomDigits:
    """Hexadecimal digits for ids from the system's random numbers, many per call of the system."""

    def __init__(self) -> None:
        self._bits = SystemRandom().getrandbits
        self._ready: list[str] = []

    def take(self) -> str:
        while True:
            try:
                # One step, because threads need ids, too.
                return self._ready.pop()
            except IndexError:
                total = _IDS_PER_CALL * _DIGITS
                digits = f"{self._bits(4 * total):0{total}x}"
                self._ready += [digits[start : start + _DIGITS] for start in range(0, len(digits), _DIGITS)]


_take: Final = _RandomDigits().take


def new_id() -> str:
    """Return a random UUID (version 4) as text, much faster than :func:`uuid.uuid4`: each delta has one."""
    digits = _take()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{_VARIANT[digits[16]]}{digits[17:20]}-{digits[20:]}"
