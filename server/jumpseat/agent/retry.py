"""When a failed model call is tried again, and after how long."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from jumpseat.errors import ProviderError, ProviderTransportError

LONGEST_SCATTER_S: Final = 1.0
"""How much a wait that a provider asks for is lengthened at most."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Back-off doubles from ``first_wait_s`` up to ``longest_wait_s``.

    A provider that asks for a longer wait than ``longest_asked_wait_s`` is not waited for: the user should know.
    ``jitter``, from 0 to 1, is the share of each wait that chance decides: sessions that were turned away together
    would come back together. A wait that was asked for only ever gets longer by it.
    """

    attempts: int = 5
    attempts_refused: int = 3
    first_wait_s: float = 0.5
    longest_wait_s: float = 8.0
    longest_asked_wait_s: float = 60.0
    jitter: float = 0.5
    chance: Callable[[], float] = field(default=random.random, repr=False)

    def wait_s(self, error: ProviderError, attempt: int) -> float | None:
        """Seconds to wait after failed attempt number ``attempt`` (from 1); ``None`` to give up."""
        attempts = self.attempts
        if isinstance(error, ProviderTransportError) and error.refused:
            # Where nothing listens, nothing will answer in the next half minute either.
            attempts = min(attempts, self.attempts_refused)
        if not error.retryable or attempt >= attempts:
            return None
        if error.retry_after_s is None:
            return self._back_off_s(attempt)
        return self._scattered(error.retry_after_s) if error.retry_after_s <= self.longest_asked_wait_s else None

    def pause_s(self, error: ProviderError, attempt: int) -> float:
        """Seconds to wait before an attempt that a client has asked for, whatever this policy thinks of it."""
        if error.retry_after_s is not None:
            return self._scattered(min(error.retry_after_s, self.longest_asked_wait_s))
        return self._back_off_s(attempt)

    def _back_off_s(self, attempt: int) -> float:
        # The exponent is bounded: a client may ask for more attempts than a float has powers of two.
        whole = min(self.first_wait_s * 2 ** min(attempt - 1, 32), self.longest_wait_s)
        return whole * (1 - self.jitter * self.chance())

    def _scattered(self, asked_s: float) -> float:
        return asked_s + min(asked_s, LONGEST_SCATTER_S) * self.jitter * self.chance()
