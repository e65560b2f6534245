"""The recipes for a method and an event in CONTRIBUTING.md, applied to a copy of the server."""

from __future__ import annotations

from pathlib import Path

from tests.support.recipes import recipe_server
from tests.support.server import scripted

METHOD = "protocol/jumpseat_protocol/clock.py"
EVENT = "protocol/jumpseat_protocol/events.py"


def test_the_recipe_adds_a_method_that_answers(tmp_path: Path) -> None:
    with recipe_server(tmp_path, METHOD) as server:
        created = server.call("session.create", {"provider": scripted()})
        clock = server.call("session.clock.get", {"sessionId": created["sessionId"]})

    assert clock == {"startedAt": created["startTime"]}


def test_the_recipe_adds_an_event_that_arrives(tmp_path: Path) -> None:
    with recipe_server(tmp_path, METHOD, EVENT) as server:
        created = server.call("session.create", {"provider": scripted()})
        clock = server.call("session.clock.get", {"sessionId": created["sessionId"]})

    assert [event["data"] for event in server.events if event["type"] == "session.clock_read"] == [clock]
