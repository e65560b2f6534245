"""When a failed model call is tried again, and after how long."""

from __future__ import annotations

from dataclasses import dataclass

from jumpseat.errors import ProviderError, ProviderTransportError


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Back-off doubles from ``first_wait_s`` up to ``longest_wait_s``.

    A provider that asks for a longer wait than ``longest_asked_wait_s`` is not waited for: the user should know.
    """

    attempts: int = 5
    attempts_refused: int = 3
    first_wait_s: float = 0.5
    longest_wait_s: float = 8.0
    longest_asked_wait_s: float = 60.0

    def wait_s(self, error: ProviderError, attempt: int) -> float | None:
        """Seconds to wait after failed attempt number ``attempt`` (from 1); ``None`` to give up."""
        attempts = self.attempts
        if isinstance(error, ProviderTransportError) and error.refused:
            # Where nothing listens, nothing will answer in the next half minute either.
            attempts = min(attempts, self.attempts_refused)
        if not error.retryable or attempt >= attempts:
            return None
        if error.retry_after_s is not None:
            return error.retry_after_s if error.retry_after_s <= self.longest_asked_wait_s else None
        return self._back_off_s(attempt)

    def pause_s(self, error: ProviderError, attempt: int) -> float:
        """Seconds to wait before an attempt that a client has asked for, whatever this policy thinks of it."""
        if error.retry_after_s is not None:
            return min(error.retry_after_s, self.longest_asked_wait_s)
        return self._back_off_s(attempt)

    def _back_off_s(self, attempt: int) -> float:
        # The exponent is bounded: a client may ask for more attempts than a float has powers of two.
        return min(self.first_wait_s * 2 ** min(attempt - 1, 32), self.longest_wait_s)
