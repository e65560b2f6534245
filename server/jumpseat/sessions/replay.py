"""Restore a session from the events of its log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from jumpseat.agent.session.session import Session
from jumpseat_protocol import events


def replay_records(session: Session, records: Iterable[dict[str, Any]]) -> None:
    """Apply the events of a log to ``session``: its conversation, model, mode and agent."""
    settings = session.settings
    for event_id, payload in decode_records(records):
        session.apply(event_id, payload)
        match payload:
            case events.SessionStart():
                settings.model = settings.model or payload.selected_model
                settings.reasoning_effort = settings.reasoning_effort or payload.reasoning_effort
            case events.SessionResume():
                # The options that the resuming client sent.
                settings.model = payload.selected_model or settings.model
                settings.reasoning_effort = payload.reasoning_effort or settings.reasoning_effort
            case events.SessionModelChange():
                settings.model = payload.new_model
                settings.reasoning_effort = payload.reasoning_effort or settings.reasoning_effort
            case events.SessionModeChanged():
                settings.mode = payload.new_mode
            case events.SubagentSelected():
                settings.agent = payload.agent_name
            case events.SubagentDeselected():
                settings.agent = None
            case _:
                pass


def decode_records(
    records: Iterable[dict[str, Any]],
) -> Iterator[tuple[str | None, events.EventPayload | events.UnknownPayload]]:
    """Yield the events of a log with their ids; an event without an id has that of the event before it."""
    last: str | None = None
    for record in records:
        event_id = record.get("id")
        last = event_id if isinstance(event_id, str) and event_id else last
        yield last, events.decode_payload(record["type"], record.get("data"))
