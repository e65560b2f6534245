"""What the clients of a cluster have seen, and the rules that it must follow.

The checker knows nothing of servers: ``tests/soak/test_cluster_history.py`` shows that it finds seeded faults.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]

_BEGINS = "assistant.turn_start"
_ENDS = "session.idle"


@dataclass
class Connection:
    """The events of one session that came over one connection of a client, in their order.

    ``is_open`` says that the connection was there until the end.
    """

    client: str
    events: list[JsonObject] = field(default_factory=list[JsonObject])
    is_open: bool = False


@dataclass
class History:
    """One session: its log at the end, what its clients saw, and the calls whose answers were accepted."""

    session_id: str
    log: list[JsonObject] = field(default_factory=list[JsonObject])
    connections: list[Connection] = field(default_factory=list[Connection])
    accepted: list[str] = field(default_factory=list[str])
    """The request ids of answers to tool calls that were accepted."""


def problems(history: History) -> Iterator[str]:
    """Yield the violations of the rules in the history of a session."""
    name = history.session_id
    order = {event["id"]: place for place, event in enumerate(history.log)}
    for event_id, count in Counter(event["id"] for event in history.log).items():
        if count > 1:
            yield f"{name}: event {event_id} is stored {count} times"
    yield from (f"{name}: {problem}" for problem in _calls(history.log))
    yield from (
        f"{name}: the answer to {request} was accepted {count} times"
        for request, count in Counter(history.accepted).items()
        if count > 1
    )
    for connection in history.connections:
        yield from (f"{name}: {connection.client}: {problem}" for problem in _announced(connection.events, order))
        yield from (f"{name}: {connection.client}: {problem}" for problem in _runs(connection))


def _calls(log: Sequence[JsonObject]) -> Iterator[str]:
    """Yield the tool calls without exactly one result."""
    results = Counter(event["data"]["toolCallId"] for event in log if event["type"] == "tool.execution_complete")
    asked = [
        call["toolCallId"]
        for event in log
        if event["type"] == "assistant.message"
        for call in event["data"].get("toolRequests") or ()
    ]
    for call in asked:
        if results[call] != 1:
            yield f"tool call {call} has {results[call]} results"


def _announced(events: Sequence[JsonObject], order: dict[str, int]) -> Iterator[str]:
    """Yield announced events that are not stored, or came twice or in another order."""
    last = -1
    seen: set[str] = set()
    for event in events:
        if event.get("ephemeral"):
            continue
        event_id = event["id"]
        if event_id in seen:
            yield f"event {event_id} ({event['type']}) came twice"
            continue
        seen.add(event_id)
        if event_id not in order:
            yield f"event {event_id} ({event['type']}) was announced and is not stored"
            continue
        if order[event_id] < last:
            yield f"event {event_id} ({event['type']}) came after later ones"
        last = max(last, order[event_id])


def _runs(connection: Connection) -> Iterator[str]:
    """Yield runs that do not end once."""
    # A client may join a session in the middle of a run.
    running, begun = True, False
    for event in connection.events:
        if event.get("agentId"):
            continue
        if event["type"] == _BEGINS:
            running = begun = True
        elif event["type"] == _ENDS:
            if not running:
                yield f"idle {event['id']} ends no run"
            running = False
    if begun and running and connection.is_open:
        yield "a run has not ended"
