"""A short part of `make soak` and `make kills`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.__main__ import run
from tests.soak.kills import kill_often


def test_the_rules_hold_after_random_steps_of_random_clients() -> None:
    run(1200, 0, shrink=False)


@pytest.mark.anyio
async def test_nothing_announced_is_lost_when_the_server_is_killed(tmp_path: Path) -> None:
    assert await kill_often(tmp_path, 10, seed=0) > 100
