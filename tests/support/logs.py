"""Logs of sessions, made from their events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from jumpseat.store.session.event_log import Records, Replay, StoredEvent


def log_of(records: Iterable[dict[str, Any]]) -> Records:
    """Return the content of a log of some events."""
    return Records(b"".join(orjson.dumps(record) + b"\n" for record in records))


def replay_of(records: Iterable[dict[str, Any]], torn_bytes: int = 0) -> Replay:
    """Return the result of reading a log of some events."""
    return Replay(log_of(records), torn_bytes)


def in_parts(record: dict[str, Any]) -> tuple[str, str | None, str | None, Any]:
    """Return the parts of an event that a replay looks at, and its data."""
    event_id, agent_id = record.get("id"), record.get("agentId")
    return (
        record["type"],
        event_id if isinstance(event_id, str) else None,
        agent_id if isinstance(agent_id, str) else None,
        record.get("data", {}),
    )


def parts_of(stored: StoredEvent) -> tuple[str, str | None, str | None, Any]:
    """Return the same parts of an event whose data are not decoded yet."""
    data = bytes(stored.data)
    return stored.type, stored.id, stored.agent_id, orjson.loads(data)
