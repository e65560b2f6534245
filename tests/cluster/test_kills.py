"""A short part of `make cluster-kills`."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.cluster.kills import Run, busy_sessions


@pytest.mark.anyio
@pytest.mark.timeout(400)
async def test_nothing_announced_is_lost_when_replicas_and_servers_of_nats_are_killed(tmp_path: Path) -> None:
    run = Run(tmp_path, random.Random(0), busy_sessions(3, 0))
    await run.kill_often(8, 1.0)
    assert run.found == []
    assert run.faults.total() == 8
    # A checker without anything to check finds nothing.
    assert sum(client.prompted for client in run.clients) > 10
    assert any(answer.accepted for session in run.busy for answer in session.history.answers)
