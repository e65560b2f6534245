"""The policy for retrying failed model calls."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from jumpseat.errors import ProviderError, ProviderLoadingError, ProviderTransportError
from jumpseat_protocol.structs import Discreet

MAX_JITTER_S: Final = 1.0
"""The most that jitter adds to a wait requested by a provider, in seconds."""


class RetryPolicy(Discreet, Struct, frozen=True):
    """Exponential back-off, doubling from ``first_wait_s`` up to ``longest_wait_s``.

    A provider that requests a longer wait than ``longest_asked_wait_s`` is not retried, so that the user learns of
    it. ``jitter``, from 0 to 1, is the random share of each wait, which keeps sessions that were rejected together
    from retrying together. It only ever lengthens a wait requested by a provider.
    """

    hidden = ("chance",)
    attempts: int = 5
    attempts_refused: int = 3
    attempts_loading: int = 90
    first_wait_s: float = 0.5
    longest_wait_s: float = 8.0
    longest_asked_wait_s: float = 60.0
    jitter: float = 0.5
    chance: Callable[[], float] = random.random

    def wait_s(self, error: ProviderError, attempt: int) -> float | None:
        """Return the seconds to wait after attempt number ``attempt`` (from 1) failed; ``None`` to give up."""
        attempts = self.attempts
        if isinstance(error, ProviderTransportError) and error.refused:
            # A refused connection means that no server is running, and none will be in half a minute.
            attempts = min(attempts, self.attempts_refused)
        if isinstance(error, ProviderLoadingError):
            # About ten minutes: large models take long to load.
            attempts = max(attempts, self.attempts_loading)
        if not error.retryable or attempt >= attempts:
            return None
        if error.retry_after_s is None:
            return self._back_off_s(attempt)
        return self._with_jitter(error.retry_after_s) if error.retry_after_s <= self.longest_asked_wait_s else None

    def pause_s(self, error: ProviderError, attempt: int) -> float:
        """Return the seconds to wait before a retry that a client has requested, whether retryable or not."""
        if error.retry_after_s is not None:
            return self._with_jitter(min(error.retry_after_s, self.longest_asked_wait_s))
        return self._back_off_s(attempt)

    def _back_off_s(self, attempt: int) -> float:
        # The exponent is bounded because a client may request more attempts than a float has powers of two.
        whole = min(self.first_wait_s * 2 ** min(attempt - 1, 32), self.longest_wait_s)
        return whole * (1 - self.jitter * self.chance())

    def _with_jitter(self, asked_s: float) -> float:
        return asked_s + min(asked_s, MAX_JITTER_S) * self.jitter * self.chance()
