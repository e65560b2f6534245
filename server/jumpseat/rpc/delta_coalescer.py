"""Hold deltas for a client that is far behind, and join those of one message into one event."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from typing import TypeAlias

from msgspec.structs import replace

from jumpseat_protocol.events import (
    Event,
    EventPayload,
    MessageDelta,
    ReasoningDelta,
    ToolCallDelta,
    ToolExecutionPartialResult,
    ToolExecutionProgress,
)

Subject: TypeAlias = tuple[str, str]
"""The type of an event, and the message or call that it belongs to."""


class HeldDeltas:
    """The held deltas of one client: of each session, in the order in which their messages began."""

    def __init__(self) -> None:
        self.messages: dict[str, dict[Subject, _Held]] = {}
        self.size = 0
        """Number of characters that are held."""

    def hold(self, session_id: str, event: Event) -> bool:
        """Keep a delta; return ``False`` if the event is not a delta."""
        described = _describe(event.payload)
        if described is None:
            return False
        subject, text = described
        session = self.messages.setdefault(session_id, {})
        held = session.get((event.type, subject))
        if held is None:
            held = session[event.type, subject] = _Held()
        elif isinstance(event.payload, ToolExecutionPartialResult | ToolExecutionProgress):
            # Each of these replaces the one before.
            self.size -= held.text.tell()
            held.text = StringIO()
        # A list of many short texts would take ten times their size.
        held.text.write(text)
        held.last = event
        self.size += len(text)
        return True

    def take(self, session_id: str | None = None) -> Iterator[tuple[str, Event]]:
        """Remove and yield the joined deltas, of one session or of all, each with the id of its session."""
        for name in [session_id] if session_id is not None else list(self.messages):
            for held in self.messages.pop(name, {}).values():
                self.size -= held.text.tell()
                yield name, _join(held.last, held.text.getvalue())


class _Held:
    """The text of the deltas of a message or call, and the last of them."""

    __slots__ = ("last", "text")

    last: Event

    def __init__(self) -> None:
        self.text = StringIO()


def _describe(payload: EventPayload) -> tuple[str, str] | None:
    """Return the id of the message or call of a delta, and its text; ``None`` if the event is no delta."""
    match payload:
        case MessageDelta():
            return payload.message_id, payload.delta_content
        case ReasoningDelta():
            return payload.reasoning_id, payload.delta_content
        case ToolCallDelta():
            return payload.tool_call_id, payload.input_delta
        case ToolExecutionPartialResult():
            return payload.tool_call_id, payload.partial_output
        case ToolExecutionProgress():
            return payload.tool_call_id, payload.progress_message
        case _:
            return None


def _join(event: Event, text: str) -> Event:
    """Return the last delta of a message with the text of all of them."""
    match event.payload:
        case MessageDelta() | ReasoningDelta():
            payload: EventPayload = replace(event.payload, delta_content=text)
        case ToolCallDelta():
            payload = replace(event.payload, input_delta=text)
        case _:
            payload = event.payload
    return Event.of(event.id, event.timestamp, event.parent_id, payload, event.agent_id, event.ephemeral)
