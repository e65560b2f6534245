"""A short run of ``make cluster-kills``: a few faults under busy sessions."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.cluster.kills import Run, busy_sessions

pytestmark = pytest.mark.anyio


FAULTS = ["kill replica", "cut clients", "cut a replica off", "kill NATS", "pause replica", "drain replica"]


async def test_faults_of_replicas_and_of_nats_under_busy_sessions_break_no_rule(tmp_path: Path) -> None:
    run = Run(tmp_path, random.Random(4), busy_sessions(3, 4))
    await run.kill_often(FAULTS, pause_s=0.5, most_s=1)

    assert run.faults == dict.fromkeys(FAULTS, 1)
    assert sum(client.prompted for client in run.clients)
    assert not run.found, "\n".join(map(str, run.found))
