"""What clients of protocol 2 can read: their event decoders are stricter than today's, and know less."""

from __future__ import annotations

from typing import Any, Final

BROADCASTS: Final = frozenset(
    {"external_tool.requested", "external_tool.completed", "permission.requested", "permission.completed"}
)
"""Events that these clients are not sent: they get requests instead, and the oldest cannot read them."""

UNREADABLE: Final = {
    "elicitation.completed": frozenset({"content"}),
    "session.context_changed": frozenset({"repository"}),
    "session.idle": frozenset({"mode"}),
    "session.permissions_changed": frozenset({"mode", "previousMode"}),
}
"""Data fields that the Python SDKs from 0.1 to 0.2 cannot read: they take a field for one of the same name in any
other event, and fail on it even where they do not know the type of the event."""


def readable(record: dict[str, Any]) -> dict[str, Any]:
    """An event in wire form, without the fields that these clients cannot read."""
    unreadable = UNREADABLE.get(record["type"])
    if unreadable is None:
        return record
    return record | {"data": {name: value for name, value in record["data"].items() if name not in unreadable}}
