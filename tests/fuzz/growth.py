"""Measure how the time of each target grows with the length of the input: ``make fuzz ARGS='--growth'``.

The inputs repeat one to three pieces of the target. Twice the length takes about twice the time where parsing is
linear, and four times where it is quadratic. This is a measurement and no verdict.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Final

from tests.fuzz.target import Check, Target

SHORT_BYTES: Final = 32 * 1024
LEAST_S: Final = 0.02
"""Processor time below which a ratio says nothing."""
RANDOM_UNITS: Final = 60


def slowest_growth(target: Target) -> tuple[float, float, bytes] | None:
    """Return the largest ratio of times for twice the length, the longer time in seconds, and what is repeated.

    ``None`` means that no input took long enough.
    """
    worst: tuple[float, float, bytes] | None = None
    with target.open() as check:
        for unit in _units(target):
            short, long = (_time(check, unit, length) for length in (SHORT_BYTES, 2 * SHORT_BYTES))
            if short >= LEAST_S and (worst is None or long / short > worst[0]):
                worst = long / short, long, unit
    return worst


def _units(target: Target) -> Iterator[bytes]:
    dice = random.Random(1)
    pieces = list(dict.fromkeys(target.pieces))
    yield from (piece.encode() for piece in pieces if piece)
    for _ in range(RANDOM_UNITS):
        yield "".join(dice.choices(pieces, k=dice.choice((2, 3)))).encode()


def _time(check: Check, unit: bytes, length: int) -> float:
    data = unit * (length // len(unit) + 1)
    started = time.process_time()
    check(data)
    return time.process_time() - started
