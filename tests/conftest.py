"""Fixtures and hooks for all tests."""

from __future__ import annotations

import gc
import signal
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest
from anyio.abc import TaskGroup
from hypothesis import HealthCheck, settings

from tests.support.forked import name_test
from tests.support.quick import is_slow


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="leave out slow modules and thorough tests")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out modules whose tests are slow, with ``--quick``; without importing them, to save time."""
    is_module = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    return True if config.getoption("quick") and is_module and is_slow(collection_path) else None


def pytest_configure() -> None:
    """Load the settings of Hypothesis, and restore the handler of SIGINT for the programs that tests start.

    Generated inputs are the same in each run, so that a failure can be reproduced, and no time limit applies to
    them: a busy machine would exceed any. Shells ignore SIGINT in background jobs.
    """
    settings.register_profile(
        "reproducible",
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[
            HealthCheck.data_too_large,
            HealthCheck.filter_too_much,
            HealthCheck.function_scoped_fixture,
            HealthCheck.too_slow,
        ],
    )
    settings.load_profile("reproducible")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionstart() -> None:
    """Look for no garbage during the collection of tests: it makes hundreds of thousands of objects that stay."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Look for garbage again, except among the collected tests and their modules."""
    gc.freeze()
    gc.enable()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def tasks() -> AsyncGenerator[TaskGroup, None]:
    """Yield a task group for the tasks of a test; those still running are cancelled at its end."""
    async with anyio.create_task_group() as group:
        yield group
        group.cancel_scope.cancel()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let the servers that the test starts be measured under its name, where coverage is measured."""
    if item.config.pluginmanager.hasplugin("_cov"):
        name_test(item.nodeid)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests marked ``thorough``, with ``--quick``, and sort those marked ``long_build`` to the front.

    Started last, the latter would keep one worker busy.
    """
    if config.getoption("quick") and (thorough := [item for item in items if item.get_closest_marker("thorough")]):
        config.hook.pytest_deselected(items=thorough)
        items[:] = [item for item in items if item.get_closest_marker("thorough") is None]
    items.sort(key=lambda item: item.get_closest_marker("long_build") is None)
