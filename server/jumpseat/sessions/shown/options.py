"""The options of a session as people read them: modes, levels of reasoning. Pure."""

from __future__ import annotations

from typing import Final

from jumpseat_protocol.events import SessionMode

MODES: Final[tuple[tuple[SessionMode, str, str], ...]] = (
    ("interactive", "Agent", "Works with you, and asks before it changes anything"),
    ("plan", "Plan", "Makes a plan before anything is changed"),
    ("autopilot", "Autopilot", "Works on by itself until the task is done"),
)
"""Name, label, description."""

ALLOW_ALL: Final = ("Allow everything", "Run every tool call without asking")
"""The label and the description of the option that ends all questions about tools."""

EFFORT: Final = "Reasoning effort"
EFFORTS: Final = ("low", "medium", "high")
"""The levels offered where those of the model are unknown."""
