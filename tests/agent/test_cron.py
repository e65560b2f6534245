"""Cron expressions: the times that fit, and the texts that are none."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from jumpseat.agent.session.schedules import parse_cron
from tests.support.cases import check_each


def test_the_next_time_fits_the_expression_in_its_time_zone() -> None:
    cases = [
        ("*/15 * * * *", "2026-01-01 10:07", "UTC", "2026-01-01 10:15"),
        ("0 9 * * mon-fri", "2026-01-02 09:00", "UTC", "2026-01-05 09:00"),
        ("30 8 1,15 * *", "2026-01-02 00:00", "Asia/Tokyo", "2026-01-15 08:30"),
        # Either day fits if both are restricted.
        ("0 0 13 * 5", "2026-01-03 00:00", "UTC", "2026-01-09 00:00"),
        ("0 0 29 2 *", "2026-01-01 00:00", "UTC", "2028-02-29 00:00"),
        ("0 0 * dec 7", "2026-01-01 00:00", "UTC", "2026-12-06 00:00"),
        # 02:30 does not exist on the day on which summer time begins.
        ("30 2 * * *", "2026-03-29 00:00", "Europe/Berlin", "2026-03-30 02:30"),
        ("30 2 * * *", "2026-10-25 00:00", "Europe/Berlin", "2026-10-25 02:30"),
    ]

    def check(case: tuple[str, str, str, str]) -> None:
        text, start, name, expected = case
        zone = ZoneInfo(name)
        at = parse_cron(text).next_after(datetime.fromisoformat(start).replace(tzinfo=zone).timestamp(), zone)
        assert at is not None
        assert datetime.fromtimestamp(at, zone).strftime("%Y-%m-%d %H:%M") == expected

    check_each({case[:2]: case for case in cases}, check)


def test_a_day_that_never_comes_has_no_next_time() -> None:
    assert parse_cron("0 0 30 2 *").next_after(0, ZoneInfo("UTC")) is None


@pytest.mark.parametrize(
    "text",
    ["", "bad", "* * * *", "60 * * * *", "* * 0 * *", "5-1 * * * *", "*/0 * * * *", "1.5 * * * *", "* * * x *"],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|invalid|not"):
        parse_cron(text)
