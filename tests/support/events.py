"""Session events of the wire: their data, by type."""

from __future__ import annotations

from collections.abc import Sequence

from tests.support.server import JsonObject


def data_of(events: Sequence[JsonObject], event_type: str) -> list[JsonObject]:
    """Return the data of the events of one type, in order."""
    return [event["data"] for event in events if event["type"] == event_type]


def tool_texts(events: Sequence[JsonObject]) -> list[str]:
    """Return the text that each tool call ended with: its result, or the message of its error."""
    return [
        data["result"]["content"] if data["success"] else data["error"]["message"]
        for data in data_of(events, "tool.execution_complete")
    ]
