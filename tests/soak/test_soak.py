"""Short parts of `make soak`, `make kills`, `make load` and `make long`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.soak.__main__ import run
from tests.soak.kills import kill_often
from tests.soak.language_servers import kill_often as kill_language_servers
from tests.soak.load import run_load
from tests.soak.long import hold
from tests.soak.world import World


def test_the_rules_hold_after_random_steps_of_random_clients() -> None:
    run(1200, 0, shrink=False)


def test_a_client_that_hangs_up_while_it_opens_a_session_is_not_attached(tmp_path: Path) -> None:
    for method in ("session.create", "session.resume"):
        world = World(tmp_path / method)
        client = world.connect(0)
        options = world.options(client, tools=False, permissions=False, mcp=False)
        if method == "session.resume":
            world.ask(client, "session.create", "session", **options)
            world.settle()
        leaving = world.connect(1)
        world.settle()
        # Both arrive in one turn of the loop.
        world.ask(leaving, method, "session", **options)
        world.hang_up(1)
        world.settle()
        live = world.live("session")
        assert live is None or len(live.clients) == (1 if method == "session.resume" else 0)
        world.close()


def test_an_abort_that_nobody_waits_for_causes_no_warning(tmp_path: Path) -> None:
    world = World(tmp_path)
    client = world.connect(0)
    world.ask(
        client, "session.create", "session", **world.options(client, tools=False, permissions=False, mcp=False)
    )
    world.settle()
    live = world.live("session")
    assert live is not None
    live.abort("user_initiated")
    world.close()


@pytest.mark.anyio
async def test_nothing_announced_is_lost_when_the_server_is_killed(tmp_path: Path) -> None:
    assert await kill_often(tmp_path, 10, seed=0) > 100


@pytest.mark.anyio
async def test_killed_language_servers_cost_only_diagnostics_and_leave_no_process(tmp_path: Path) -> None:
    kills, _ = await kill_language_servers(tmp_path, "words", 6, seed=0)
    assert kills == 6


@pytest.mark.anyio
async def test_a_session_of_all_kinds_of_turns_is_the_same_in_a_fresh_process(tmp_path: Path) -> None:
    session = await hold(tmp_path, 13, replay_every=7)
    assert (session.rewinds, session.replays) == (1, 2)
    assert session.agents >= 15
    assert session.requests >= 60


@pytest.mark.anyio
@pytest.mark.skipif(sys.platform != "linux", reason="processes are examined in /proc")
async def test_a_server_is_as_it_was_after_a_load_of_all_kinds(tmp_path: Path) -> None:
    load = await run_load(tmp_path, minutes=5, clients=2, seed=0, most_actions=30)
    at_rest = load.samples[-1]
    assert at_rest.actions >= 30
    assert at_rest.processes == 0
    assert at_rest.tasks < 10
    # Idle connections to the model stay open for a while.
    assert at_rest.handles < 30
