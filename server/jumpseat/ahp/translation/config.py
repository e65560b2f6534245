"""The configuration of a session: its mode, its model, and whether it asks. Pure."""

from __future__ import annotations

from typing import Any, Final

from jumpseat.ahp.states.values import JsonObject, present
from jumpseat_protocol.events import SessionMode

MODE, MODEL, ALLOW_ALL = "mode", "model", "autoApprove"
MODES: Final[tuple[tuple[SessionMode, str, str], ...]] = (
    ("interactive", "Agent", "Works with you, and asks before it changes anything"),
    ("plan", "Plan", "Makes a plan before anything is changed"),
    ("autopilot", "Autopilot", "Works on by itself until the task is done"),
)
SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {
        MODE: {
            "type": "string",
            "title": "Mode",
            "enum": [mode for mode, *_ in MODES],
            "enumLabels": [label for _, label, _ in MODES],
            "enumDescriptions": [description for *_, description in MODES],
            "default": "interactive",
            "sessionMutable": True,
        },
        MODEL: {"type": "string", "title": "Model", "sessionMutable": True},
        ALLOW_ALL: {
            "type": "boolean",
            "title": "Allow everything",
            "description": "Run every tool call without asking",
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
    return next((mode for mode, *_ in MODES if mode == value), None)
