"""Many cases of one kind in one test: pytest needs several milliseconds for each item, most cases far less."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TypeAlias, TypeVar

import pytest

K = TypeVar("K")
V = TypeVar("V")

Case: TypeAlias = Callable[[object], AbstractContextManager[None]]
"""Return a context manager for the statements of the case with a name."""


def check_each(cases: Mapping[K, V], check: Callable[[V], object]) -> None:
    """Call ``check`` with every case, and fail with the name and error of each case that does not pass."""
    with all_cases() as case:
        for name, value in cases.items():
            with case(name):
                check(value)


@contextmanager
def all_cases() -> Generator[Case]:
    """Run every case, and fail with the name and error of each case that does not pass.

    For cases that await something or need statements of their own; otherwise use :func:`check_each`::

        with all_cases() as case:
            for path in paths:
                with case(path.name):
                    assert ...

    Raises:
        AssertionError: there are no cases.
        BaseExceptionGroup: the errors of the cases, each with a note that names its case.
    """
    failures: list[BaseException] = []
    failed: list[str] = []
    count = 0

    @contextmanager
    def case(name: object) -> Generator[None]:
        nonlocal count
        count += 1
        try:
            yield
        except (Exception, pytest.fail.Exception) as error:
            error.add_note(f"case: {name}")
            failures.append(error)
            failed.append(str(name))

    yield case
    assert count, "there are no cases"
    if failures:
        # A traceback shows the first fifteen errors of a group, hence the names.
        raise BaseExceptionGroup(f"{len(failures)} of {count} cases failed: {', '.join(failed)}", failures)
