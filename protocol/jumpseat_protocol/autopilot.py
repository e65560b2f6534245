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


class ObjectiveWriteParams(SessionParams):
    content: str


class ObjectiveWritten(WireModel):
    operation: Literal["create", "update"]


class ObjectiveDeleted(WireModel):
    deleted: StrictBool


class ObjectiveExists(WireModel):
    exists: StrictBool


class ObjectiveState(WireModel):
    """``credit_count_nano_aiu`` are the credits that the work has cost, in 10^-9, if the provider reports them."""

    id: int
    objective: str
    status: Literal["active", "paused", "completed"]
    turn_count: int
    credit_count_nano_aiu: str = "0"
    completion_summary: str | None = None
    pause_reason: str | None = None


class ObjectiveStateResult(WireModel):
    """``state`` is ``null`` if there is no objective."""

    sent_as_null = ("state",)

    state: ObjectiveState | None = None


class TaskCompleteDataParams(SessionParams):
    tool_args: dict[str, Any]
    final_result: dict[str, Any]


class TaskCompleteData(WireModel):
    summary: str
    success: StrictBool


METHODS: Final[Mapping[str, Method]] = {
    "session.autopilotObjective.getState": Method(SessionParams, ObjectiveStateResult),
    "session.tools.taskCompleteEventData": Method(TaskCompleteDataParams, TaskCompleteData),
    "session.workspaces.readAutopilotObjective": Method(SessionParams, ObjectiveContent),
    "session.workspaces.writeAutopilotObjective": Method(ObjectiveWriteParams, ObjectiveWritten),
    "session.workspaces.deleteAutopilotObjective": Method(SessionParams, ObjectiveDeleted),
    "session.workspaces.autopilotObjectiveExists": Method(SessionParams, ObjectiveExists),
}
