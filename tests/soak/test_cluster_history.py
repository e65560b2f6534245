"""The checker of histories finds each fault that is seeded into a good history."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

import pytest

from tests.soak.cluster.history import Connection, History, JsonObject, problems


def event(kind: str, event_id: str, **data: object) -> JsonObject:
    return {"type": kind, "id": event_id, "data": data}


CALL = event("assistant.message", "e3", toolRequests=[{"toolCallId": "call"}])
LOG = [
    event("session.start", "e0"),
    event("user.message", "e1"),
    event("assistant.turn_start", "e2"),
    CALL,
    event("tool.execution_complete", "e4", toolCallId="call"),
    event("assistant.turn_end", "e5"),
]
IDLE = {**event("session.idle", "i1"), "ephemeral": True}


def good() -> History:
    return History("s", deepcopy(LOG), [Connection("c", [*deepcopy(LOG[1:]), IDLE], is_open=True)], ["request"])


def test_a_good_history_has_no_problem() -> None:
    assert list(problems(good())) == []


def lose(history: History) -> None:
    del history.log[1]


def store_twice(history: History) -> None:
    history.log.append(history.log[-1])


def answer_twice(history: History) -> None:
    history.log.append(event("tool.execution_complete", "e6", toolCallId="call"))


def accept_twice(history: History) -> None:
    history.accepted.append("request")


def forget_result(history: History) -> None:
    history.log = [entry for entry in history.log if entry["type"] != "tool.execution_complete"]
    history.connections[0].events = []


def announce_twice(history: History) -> None:
    events = history.connections[0].events
    events.insert(3, events[2])


def reorder(history: History) -> None:
    events = history.connections[0].events
    events[0], events[1] = events[1], events[0]


def never_end(history: History) -> None:
    history.connections[0].events.remove(IDLE)


def end_twice(history: History) -> None:
    history.connections[0].events.append({**IDLE, "id": "i2"})


FAULTS: dict[str, tuple[Callable[[History], None], str]] = {
    "lost": (lose, "announced and is not stored"),
    "stored twice": (store_twice, "is stored 2 times"),
    "answered twice": (answer_twice, "has 2 results"),
    "accepted twice": (accept_twice, "was accepted 2 times"),
    "no result": (forget_result, "has 0 results"),
    "announced twice": (announce_twice, "came twice"),
    "reordered": (reorder, "came after later ones"),
    "no end": (never_end, "has not ended"),
    "two ends": (end_twice, "ends no run"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_seeded_fault_is_found(name: str) -> None:
    seed, expected = FAULTS[name]
    history = good()
    seed(history)
    assert any(expected in problem for problem in problems(history)), list(problems(history))
