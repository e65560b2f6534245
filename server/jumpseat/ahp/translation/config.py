"""The configuration of a session: its mode, its model, and whether it asks. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from jumpseat.ahp.states.values import JsonObject, present
from jumpseat.sessions.shown import options as shown
from jumpseat_protocol.events import SessionMode

MODE, MODEL, ALLOW_ALL, EFFORT = "mode", "model", "autoApprove", "thinkingLevel"
"""The names that VS Code uses; the effort belongs to the model of a message."""
SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {
        MODE: {
            "type": "string",
            "title": "Mode",
            "enum": [mode for mode, *_ in shown.MODES],
            "enumLabels": [label for _, label, _ in shown.MODES],
            "enumDescriptions": [description for *_, description in shown.MODES],
            "default": "interactive",
            "sessionMutable": True,
        },
        MODEL: {"type": "string", "title": "Model", "enumDynamic": True, "sessionMutable": True},
        ALLOW_ALL: {
            "type": "boolean",
            "title": shown.ALLOW_ALL[0],
            "description": shown.ALLOW_ALL[1],
            "default": False,
            "sessionMutable": True,
        },
    },
}


def values_of(mode: str, model: str | None, *, allow_all: bool) -> JsonObject:
    """Return the values for a session; a model that the server chooses is left out."""
    return present({MODE: mode, MODEL: model, ALLOW_ALL: allow_all})


def mode_of(value: Any) -> SessionMode | None:
    """Return a mode, ``None`` for anything else."""
    return next((mode for mode, *_ in shown.MODES if mode == value), None)


def effort_schema(efforts: Sequence[str], default: str | None) -> JsonObject | None:
    """Return the configuration of a model with these levels of reasoning, ``None`` without any."""
    if not efforts:
        return None
    level: JsonObject = {"type": "string", "title": shown.EFFORT, "enum": list(efforts)}
    level["enumLabels"] = [effort.capitalize() for effort in efforts]
    return {"type": "object", "properties": {EFFORT: present({**level, "default": default})}}
