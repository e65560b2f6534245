"""When a failed model call is tried again, and after how long."""

from __future__ import annotations

import pytest

from jumpseat.agent.retry import RetryPolicy
from jumpseat.errors import (
    ProviderAuthError,
    ProviderContextError,
    ProviderError,
    ProviderOverloadedError,
    ProviderProtocolError,
    ProviderQuotaError,
    ProviderRateLimitError,
    ProviderRequestError,
    ProviderTransportError,
)


def waits(error: ProviderError, policy: RetryPolicy | None = None) -> list[float]:
    """All waits until the policy gives up."""
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
def test_what_may_pass_is_tried_five_times_with_doubling_waits(error: ProviderError) -> None:
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
def test_what_will_not_pass_is_not_tried_again(error: ProviderError) -> None:
    assert waits(error) == []


def test_a_refused_connection_is_given_up_early() -> None:
    assert waits(ProviderTransportError("x", refused=True)) == [0.5, 1.0]


def test_waits_do_not_grow_beyond_the_longest() -> None:
    assert waits(ProviderOverloadedError("x"), RetryPolicy(attempts=8, jitter=0)) == [0.5, 1, 2, 4, 8, 8, 8]


def test_the_wait_that_a_provider_asks_for_takes_the_place_of_ours() -> None:
    assert waits(ProviderRateLimitError("x", retry_after_s=20)) == [20, 20, 20, 20]
    assert waits(ProviderRateLimitError("x", retry_after_s=0)) == [0, 0, 0, 0]
    assert waits(ProviderRateLimitError("x", retry_after_s=60)) == [60, 60, 60, 60]


def test_a_provider_that_asks_for_a_very_long_wait_is_not_waited_for() -> None:
    assert waits(ProviderRateLimitError("x", retry_after_s=60.1)) == []


def test_sessions_that_were_turned_away_together_do_not_come_back_together() -> None:
    chances = iter([0.0, 1.0, 0.5, 0.25])
    policy = RetryPolicy(chance=lambda: next(chances))

    assert waits(ProviderOverloadedError("x"), policy) == [0.5, 0.5, 1.5, 3.5]
    assert waits(ProviderOverloadedError("x"), RetryPolicy()) != waits(ProviderOverloadedError("x"), RetryPolicy())


@pytest.mark.parametrize(("asked", "longest"), [(0, 0), (0.5, 0.75), (20, 20.5)])
def test_chance_only_lengthens_a_wait_that_the_provider_asks_for(asked: float, longest: float) -> None:
    error = ProviderRateLimitError("x", retry_after_s=asked)

    assert waits(error, RetryPolicy(chance=lambda: 0.0)) == [asked] * 4
    assert waits(error, RetryPolicy(chance=lambda: 1.0)) == [longest] * 4
    assert RetryPolicy(chance=lambda: 1.0).pause_s(error, 1) == longest
