"""The objective of a session in autopilot mode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import StrictBool

from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.wire import Method, WireModel


class ObjectiveContent(WireModel):
    """The file of the objective, as text; ``null`` if there is none."""

    sent_as_null = ("content",)

    content: str | None = None
    """The text, or ``null`` if there is no objective."""


class ObjectiveWriteParams(SessionParams):
    content: str
    """The text."""


class ObjectiveWritten(WireModel):
    operation: Literal["create", "update"]
    """What was done."""


class ObjectiveDeleted(WireModel):
    deleted: StrictBool
    """Whether there was an objective."""


class ObjectiveExists(WireModel):
    exists: StrictBool
    """Whether there is an objective."""


class ObjectiveState(WireModel):
    """``credit_count_nano_aiu`` are the credits that the work has cost, in 10^-9, if the provider reports them."""

    id: int
    """The number of the objective."""
    objective: str
    """What is to be reached."""
    status: Literal["active", "paused", "completed"]
    """Its state."""
    turn_count: int
    """How many turns the work has taken."""
    credit_count_nano_aiu: str = "0"
    """The credits that the work has cost, in 10^-9."""
    completion_summary: str | None = None
    """What was done, in the model's words."""
    pause_reason: str | None = None
    """Why the work is paused."""


class ObjectiveStateResult(WireModel):
    """``state`` is ``null`` if there is no objective."""

    sent_as_null = ("state",)

    state: ObjectiveState | None = None
    """The objective, or ``null``."""


class TaskCompleteDataParams(SessionParams):
    tool_args: dict[str, Any]
    """The arguments of the call."""
    final_result: dict[str, Any]
    """The result of the call."""


class TaskCompleteData(WireModel):
    summary: str
    """What was done, in the model's words."""
    success: StrictBool


METHODS: Final[Mapping[str, Method]] = {
    "session.autopilotObjective.getState": Method(
        SessionParams, ObjectiveStateResult, "Return the objective of autopilot and its state."
    ),
    "session.tools.taskCompleteEventData": Method(
        TaskCompleteDataParams, TaskCompleteData, "Return what the event of a completed task says."
    ),
    "session.workspaces.readAutopilotObjective": Method(
        SessionParams, ObjectiveContent, "Read the file of the objective."
    ),
    "session.workspaces.writeAutopilotObjective": Method(
        ObjectiveWriteParams, ObjectiveWritten, "Write the file of the objective."
    ),
    "session.workspaces.deleteAutopilotObjective": Method(
        SessionParams, ObjectiveDeleted, "Delete the file of the objective."
    ),
    "session.workspaces.autopilotObjectiveExists": Method(
        SessionParams, ObjectiveExists, "Return whether there is an objective."
    ),
}
