"""Adapt events to clients of protocol 2, whose decoders are stricter and know fewer fields."""

from __future__ import annotations

from typing import Any, Final

BROADCASTS: Final = frozenset(
    {"external_tool.requested", "external_tool.completed", "permission.requested", "permission.completed"}
)
"""The events that these clients are not sent. They are sent requests instead, and the oldest cannot decode them."""

UNREADABLE: Final = {
    "elicitation.completed": frozenset({"content"}),
    "session.autopilot_objective_changed": frozenset({"status"}),
    "session.canvas.opened": frozenset({"status"}),
    "session.context_changed": frozenset({"repository"}),
    "session.idle": frozenset({"mode"}),
    "session.managed_settings_enforced": frozenset({"action"}),
    "session.permissions_changed": frozenset({"mode", "previousMode"}),
}
"""The fields, by event type, that the Python SDKs from 0.1 to 0.2 cannot decode.

These SDKs decode a field as the field of the same name in any other event, even in events of unknown types.
"""


def readable(record: dict[str, Any]) -> dict[str, Any]:
    """Return an event in wire form without the fields that these clients cannot decode."""
    unreadable = UNREADABLE.get(record["type"])
    if unreadable is None:
        return record
    return record | {"data": {name: value for name, value in record["data"].items() if name not in unreadable}}
