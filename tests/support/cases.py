"""Many cases of one kind in one test: pytest needs several milliseconds for each item, most cases far less."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import pytest

K = TypeVar("K")
V = TypeVar("V")


def check_each(cases: Mapping[K, V], check: Callable[[V], object]) -> None:
    """Call ``check`` with every case, and fail with the name and error of each case that does not pass."""
    assert cases, "there are no cases"
    failures: list[str] = []
    for name, case in cases.items():
        try:
            check(case)
        except (Exception, pytest.fail.Exception) as error:
            failures.append(f"{name!r}: {type(error).__name__}: {error}")
    if failures:
        pytest.fail("\n".join([f"{len(failures)} of {len(cases)} cases failed:", *failures]), pytrace=False)
