"""The numbers of actions: one sequence for all channels, which grows over restarts without being stored."""

from __future__ import annotations

import time
from collections.abc import Callable


def microseconds() -> int:
    """Return the time since 1970 in microseconds, which is below 2^53 until the year 2255."""
    return time.time_ns() // 1000


class Numbers:
    """Gives numbers, each larger than all before and at least the time of ``clock``.

    A process that starts later begins with larger numbers, as far as the clocks agree; where a client has seen a
    larger one nevertheless, :meth:`raise_to` goes on from there.
    """

    def __init__(self, clock: Callable[[], int] = microseconds) -> None:
        self._clock = clock
        self.last = clock()

    def next(self) -> int:
        """Return a new number."""
        self.last = max(self.last + 1, self._clock())
        return self.last

    def raise_to(self, number: int) -> None:
        """Give only numbers above ``number``."""
        self.last = max(self.last, number)
