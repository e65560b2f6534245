"""The numbers of actions: one sequence for all channels, which grows over restarts without being stored."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import Final

REPLICAS: Final = 1024
"""The remainders that replicas choose from. A client that has seen the numbers of another one gets snapshots."""


def microseconds() -> int:
    """Return the time since 1970 in microseconds, which is below 2^53 until the year 2255."""
    return time.time_ns() // 1000


class Numbers:
    """Gives numbers, each larger than all before and at least the time of ``clock``.

    A process that starts later begins with larger numbers, as far as the clocks agree; where a client has seen a
    larger one nevertheless, :meth:`raise_to` goes on from there.

    The numbers of a replica have a remainder of their own when divided by ``step``: a number tells who gave it.
    """

    def __init__(self, clock: Callable[[], int] = microseconds, step: int = 1, remainder: int = 0) -> None:
        self._clock = clock
        self._step = step
        self._remainder = remainder
        self.last = self._from(clock())

    @classmethod
    def of_replica(cls) -> Numbers:
        """Return numbers that another replica, or another life of this one, hardly gives."""
        return cls(step=REPLICAS, remainder=secrets.randbelow(REPLICAS))

    def _from(self, number: int) -> int:
        """Return the first number of this sequence that is not below ``number``."""
        return number + (self._remainder - number) % self._step

    def next(self) -> int:
        """Return a new number."""
        self.last = self._from(max(self.last + 1, self._clock()))
        return self.last

    def raise_to(self, number: int) -> None:
        """Give only numbers above ``number``."""
        self.last = self._from(max(self.last, number))

    def may_have_given(self, number: int) -> bool:
        """Return whether a number can be of this sequence."""
        return number % self._step == self._remainder
