"""A short storm, in which each fault meets most wires. ``make storms`` runs thousands."""

from __future__ import annotations

import pytest

from tests.storms.__main__ import weather
from tests.storms.servers import MCP_FAULTS, PROVIDER_FAULTS, plan_of

RUNS = 96
SEED = 1


@pytest.mark.anyio
async def test_each_run_ends_in_the_right_answer_or_one_clear_error() -> None:
    plans = [plan_of(number, SEED) for number in range(RUNS)]
    assert {plan.fault for plan in plans} == {*PROVIDER_FAULTS}
    assert {plan.mcp_fault for plan in plans} == {*MCP_FAULTS, None}

    outcome = await weather(RUNS, SEED, jobs=8)

    assert outcome.broken == []
    assert sum(ends.total() for ends in outcome.ends.values()) == RUNS
