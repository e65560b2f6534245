"""Cron expressions: five fields (minute, hour, day of month, month, day of week), evaluated in a time zone.

A field is ``*``, a number, a range ``1-5``, any of these with a step ``/15``, or a list of them. Months and days of
the week have English names, too; Sunday is 0 or 7. If both days are restricted, either fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from msgspec import Struct

MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")

MAX_DAYS: Final = 366 * 8 + 2
"""Days to look ahead: 29 February may be eight years away."""


class Cron(Struct, frozen=True):
    """A parsed expression; ``any_day`` and ``any_weekday`` tell which of the two days are not restricted."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    any_weekday: bool

    def next_after(self, seconds: float, zone: ZoneInfo) -> float | None:
        """Return the first time after ``seconds`` since the epoch that fits, or ``None`` if there is none.

        Local times that a change of the clock skips do not occur; of those that occur twice, the first counts.
        """
        day = datetime.fromtimestamp(seconds, zone).date()
        for _ in range(MAX_DAYS):
            if self._fits(day):
                for hour in self.hours:
                    for minute in self.minutes:
                        local = datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone)
                        at = local.timestamp()
                        if at > seconds and _exists(local):
                            return at
            day += timedelta(days=1)
        return None

    def _fits(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        fits_day, fits_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        if self.any_day or self.any_weekday:
            return fits_day and fits_weekday
        return fits_day or fits_weekday


def parse_cron(text: str) -> Cron:
    """Parse an expression.

    Raises:
        ValueError: the expression is invalid.
    """
    fields = text.split()
    if len(fields) != 5:
        raise ValueError(f"expected 5 fields, found {len(fields)}")
    minutes, hours, days, months, weekdays = fields
    return Cron(
        tuple(sorted(_parse(minutes, 0, 59))),
        tuple(sorted(_parse(hours, 0, 23))),
        frozenset(_parse(days, 1, 31)),
        frozenset(_parse(months, 1, 12, MONTHS)),
        frozenset(day % 7 for day in _parse(weekdays, 0, 7, DAYS)),
        days.startswith("*"),
        weekdays.startswith("*"),
    )


def _parse(field: str, low: int, high: int, names: Sequence[str] = ()) -> set[int]:
    found: set[int] = set()
    for part in field.split(","):
        span, slash, step = part.partition("/")
        if slash and (not _is_number(step) or int(step) == 0):
            raise ValueError(f"invalid step in {part!r}")
        first, dash, last = span.partition("-")
        if span == "*":
            begin, end = low, high
        else:
            begin = _value(first, low, names)
            end = _value(last, low, names) if dash else high if slash else begin
        if not low <= begin <= end <= high:
            raise ValueError(f"{part!r} is not within {low}-{high}")
        found.update(range(begin, end + 1, int(step) if slash else 1))
    return found


def _value(text: str, low: int, names: Sequence[str]) -> int:
    if text.lower() in names:
        return names.index(text.lower()) + (low if low else 0)
    if not _is_number(text):
        raise ValueError(f"{text!r} is not a number")
    return int(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 4


def _exists(local: datetime) -> bool:
    return local.astimezone(UTC).astimezone(local.tzinfo).replace(fold=0) == local
