"""Whether an action can be one that a client dispatches. Pure."""

from __future__ import annotations

from typing import Any, cast

from jumpseat.ahp.states.values import JsonObject
from jumpseat.ahp.translation.limits import excess_of
from jumpseat.ahp.translation.shapes import ACTIONS, mismatch_of


def problem_of(action: Any) -> str | None:
    """Return why an action cannot be one of a client, or ``None``."""
    if not isinstance(action, dict) or not isinstance(kind := cast("JsonObject", action).get("type"), str):
        return "an action is an object with a string 'type'"
    if (shape := ACTIONS.get(kind)) is None:
        return f"{kind[:100]!r} is not an action of clients"
    return excess_of(action) or mismatch_of(cast("JsonObject", action), shape)
