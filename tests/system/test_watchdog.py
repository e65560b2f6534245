"""The watchdog logs what blocks the event loop, once per block."""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator

import anyio
import pytest

from jumpseat.system.watchdog import watch_loop
from tests.support.limits import WAIT_S

pytestmark = pytest.mark.anyio


class Reports(logging.Handler):
    """Collects the reports of the watchdog; ``arrived`` is set at each."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.arrived = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())
        self.arrived.set()


@pytest.fixture
def reports() -> Generator[Reports]:
    handler = Reports()
    logging.getLogger("jumpseat.system.watchdog").addHandler(handler)
    yield handler
    logging.getLogger("jumpseat.system.watchdog").removeHandler(handler)


def block_until_reported(reports: Reports, secret: str) -> None:
    reports.arrived.clear()
    assert reports.arrived.wait(WAIT_S), f"no report: {len(secret)}"


@pytest.mark.thorough
async def test_each_block_is_reported_once_with_its_functions_and_no_values(reports: Reports) -> None:
    with watch_loop(sample_s=0.01, blocked_s=0.25):
        for _ in range(3):
            block_until_reported(reports, "hunter2-hunter2")
            # The thread waits until the loop runs again.
            await anyio.lowlevel.checkpoint()
    # A busy machine may stop the loop anywhere else, too.
    ours = [text for text in reports.texts if "block_until_reported" in text]
    assert len(ours) == 3
    for text in ours:
        assert f"{__file__}:" in text
        assert "hunter2" not in text
        assert "reports.arrived" not in text


async def test_a_loop_that_waits_or_is_busy_in_small_steps_is_not_reported(reports: Reports) -> None:
    with watch_loop(sample_s=0.001, blocked_s=5.0):
        await anyio.sleep(0.05)
        for _ in range(20_000):
            await anyio.lowlevel.checkpoint()
    assert reports.texts == []
