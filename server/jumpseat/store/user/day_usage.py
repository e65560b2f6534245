"""The usage of model calls on the current day: a small document of the user, which all processes share.

A day is one of the local calendar, and yesterday's sum stays, because replicas may be in other time zones.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import anyio.to_thread

from jumpseat.agent.clock import Clock, local_day
from jumpseat.agent.session.budget import Spent
from jumpseat.store.user.documents import Document
from jumpseat.store.user.private_file import PrivateFile

FILE: Final = "day-usage.json"
KEPT_DAYS: Final = 3


class DayUsage:
    """The sums in ``document``: the tokens and dollars of each day, by its date."""

    def __init__(self, document: Document, clock: Clock) -> None:
        self._document = document
        self._clock = clock

    async def add(self, spent: Spent) -> Spent:
        """Add to the sum of the day and return it.

        Raises:
            StoreError: the document cannot be read or stored.
        """
        day = local_day(self._clock.now())
        return await anyio.to_thread.run_sync(self._add, day, spent)

    def _add(self, day: str, spent: Spent) -> Spent:
        if spent == Spent():
            return _sum_of(self._document.read(), day)
        return self._document.change(partial(_add_to, day=day, spent=spent))


def file_in(home: Path) -> PrivateFile:
    """Return the document in a home folder."""
    return PrivateFile(home / FILE)


def _add_to(values: dict[str, Any], day: str, spent: Spent) -> Spent:
    total = _sum_of(values, day) + spent
    values[day] = {"tokens": total.tokens, "dollars": round(total.dollars, 9)}
    for old in sorted(values)[:-KEPT_DAYS]:
        del values[old]
    return total


def _sum_of(values: dict[str, Any], day: str) -> Spent:
    """Return the sum of a day; a value that other programs have broken counts as nothing."""
    stored: Any = values.get(day)
    found = cast("dict[str, Any]", stored) if isinstance(stored, dict) else {}
    tokens, dollars = found.get("tokens"), found.get("dollars")
    return Spent(
        tokens if isinstance(tokens, int) and tokens > 0 else 0,
        float(dollars) if isinstance(dollars, int | float) and dollars > 0 else 0.0,
    )
