"""Hold deltas for a client that is far behind, and join those of one message into one event."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias

from jumpseat_protocol.events import (
    Event,
    EventPayload,
    MessageDelta,
    ReasoningDelta,
    ToolCallDelta,
    ToolExecutionPartialResult,
    ToolExecutionProgress,
)

Key: TypeAlias = tuple[str, str, str]
"""The session, the type of the event, and the message or call that it belongs to."""


class HeldDeltas:
    """The held deltas of one client, in the order in which their messages began."""

    def __init__(self) -> None:
        self._held: dict[Key, tuple[Event, list[str]]] = {}
        self.size = 0
        """Number of characters that are held."""

    def hold(self, session_id: str, event: Event) -> bool:
        """Keep a delta; return ``False`` if the event is not a delta."""
        described = _describe(event.payload)
        if described is None:
            return False
        subject, text = described
        key = (session_id, event.type, subject)
        _, texts = self._held.get(key, (event, []))
        if isinstance(event.payload, ToolExecutionPartialResult | ToolExecutionProgress):
            # Each of these replaces the one before.
            self.size -= sum(map(len, texts))
            texts.clear()
        texts.append(text)
        self._held[key] = (event, texts)
        self.size += len(text)
        return True

    def take(self, session_id: str | None = None) -> Iterator[tuple[str, Event]]:
        """Remove and yield the joined deltas, of one session or of all, each with the id of its session."""
        for key in [key for key in self._held if session_id in (None, key[0])]:
            event, texts = self._held.pop(key)
            self.size -= sum(map(len, texts))
            yield key[0], event if len(texts) == 1 else _join(event, texts)


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


def _join(event: Event, texts: list[str]) -> Event:
    """Return the last delta of a message with the text of all of them."""
    text = "".join(texts)
    match event.payload:
        case MessageDelta() | ReasoningDelta():
            payload: EventPayload = replace(event.payload, delta_content=text)
        case ToolCallDelta():
            payload = replace(event.payload, input_delta=text)
        case _:
            payload = event.payload
    return Event(event.id, event.timestamp, event.parent_id, payload, event.agent_id, event.ephemeral)
