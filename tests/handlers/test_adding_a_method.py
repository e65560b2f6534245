"""The recipe for a method in CONTRIBUTING.md, applied to a copy of the server."""

from __future__ import annotations

from pathlib import Path

from tests.support.recipes import recipe_server
from tests.support.server import scripted


def test_the_recipe_adds_a_method_that_answers(tmp_path: Path) -> None:
    with recipe_server(tmp_path, "protocol/jumpseat_protocol/clock.py") as server:
        created = server.call("session.create", {"provider": scripted()})
        clock = server.call("session.clock.get", {"sessionId": created["sessionId"]})

    assert clock == {"startedAt": created["startTime"]}
