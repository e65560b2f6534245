"""What all tests share."""

from __future__ import annotations

import signal
from collections.abc import AsyncGenerator

import anyio
import pytest
from anyio.abc import TaskGroup


def pytest_configure() -> None:
    """Hear ctrl-c, as the programs do that tests start: a shell has what runs behind it ignore the signal."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def tasks() -> AsyncGenerator[TaskGroup, None]:
    """Where the tasks of a test run; what is left of them ends with it."""
    async with anyio.create_task_group() as group:
        yield group
        group.cancel_scope.cancel()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes minutes begins first: begun last, it would run alone, with all other workers out of work."""
    items.sort(key=lambda item: item.get_closest_marker("long_build") is None)
