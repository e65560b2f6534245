"""The retry policy for failed model calls."""

from __future__ import annotations

import pytest

from jumpseat.agent.retry import RetryPolicy
from jumpseat.errors import (
    ProviderAuthError,
    ProviderContextError,
    ProviderError,
    ProviderLoadingError,
    ProviderOverloadedError,
    ProviderProtocolError,
    ProviderQuotaError,
    ProviderRateLimitError,
    ProviderRequestError,
    ProviderTransportError,
)


def waits(error: ProviderError, policy: RetryPolicy | None = None) -> list[float]:
    """Return all waits until the policy gives up."""
    policy = policy or RetryPolicy(jitter=0)
    out: list[float] = []
    while (wait_s := policy.wait_s(error, len(out) + 1)) is not None:
        out.append(wait_s)
    return out


@pytest.mark.parametrize(
    "error",
    [
        ProviderRateLimitError("x"),
        ProviderOverloadedError("x"),
        ProviderTransportError("x"),
        ProviderProtocolError("x"),
    ],
)
def test_a_transient_error_is_tried_five_times_with_doubling_waits(error: ProviderError) -> None:
    assert waits(error) == [0.5, 1.0, 2.0, 4.0]


@pytest.mark.parametrize(
    "error",
    [
        ProviderAuthError("x", retry_after_s=1),
        ProviderQuotaError("x", retry_after_s=1),
        ProviderContextError("x"),
        ProviderRequestError("x"),
        ProviderError("x"),
    ],
)
def test_a_permanent_error_is_not_retried(error: ProviderError) -> None:
    assert waits(error) == []


def test_a_refused_connection_is_retried_less_often() -> None:
    assert waits(ProviderTransportError("x", refused=True)) == [0.5, 1.0]


def test_a_model_that_is_being_loaded_is_waited_for_about_ten_minutes() -> None:
    assert 500 < sum(waits(ProviderLoadingError("x"))) < 800


def test_waits_do_not_exceed_the_longest_wait() -> None:
    assert waits(ProviderOverloadedError("x"), RetryPolicy(attempts=8, jitter=0)) == [0.5, 1, 2, 4, 8, 8, 8]


def test_a_wait_requested_by_the_provider_replaces_the_back_off() -> None:
    assert waits(ProviderRateLimitError("x", retry_after_s=20)) == [20, 20, 20, 20]
    assert waits(ProviderRateLimitError("x", retry_after_s=0)) == [0, 0, 0, 0]
    assert waits(ProviderRateLimitError("x", retry_after_s=60)) == [60, 60, 60, 60]


def test_a_very_long_requested_wait_ends_the_retries() -> None:
    assert waits(ProviderRateLimitError("x", retry_after_s=60.1)) == []


def test_sessions_rejected_together_do_not_retry_together() -> None:
    chances = iter([0.0, 1.0, 0.5, 0.25])
    policy = RetryPolicy(chance=lambda: next(chances))

    assert waits(ProviderOverloadedError("x"), policy) == [0.5, 0.5, 1.5, 3.5]
    assert waits(ProviderOverloadedError("x"), RetryPolicy()) != waits(ProviderOverloadedError("x"), RetryPolicy())


@pytest.mark.parametrize(("asked", "longest"), [(0, 0), (0.5, 0.75), (20, 20.5)])
def test_jitter_only_lengthens_a_requested_wait(asked: float, longest: float) -> None:
    error = ProviderRateLimitError("x", retry_after_s=asked)

    assert waits(error, RetryPolicy(chance=lambda: 0.0)) == [asked] * 4
    assert waits(error, RetryPolicy(chance=lambda: 1.0)) == [longest] * 4
    assert RetryPolicy(chance=lambda: 1.0).pause_s(error, 1) == longest
