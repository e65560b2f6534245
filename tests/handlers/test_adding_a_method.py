"""The recipes for a method and an event in CONTRIBUTING.md, applied to a copy of the server."""

from __future__ import annotations

from pathlib import Path

from tests.support.recipes import recipe_server
from tests.support.server import scripted


def test_the_recipes_add_a_method_that_answers_and_an_event(tmp_path: Path) -> None:
    with recipe_server(tmp_path) as server:
        created = server.call("session.create", {"provider": scripted()})
        server.events.clear()
        clock = server.call("session.clock.get", {"sessionId": created["sessionId"]})

    assert clock == {"startedAt": created["startTime"]}
    assert [event["data"] for event in server.events if event["type"] == "session.clock_read"] == [clock]
