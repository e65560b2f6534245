"""``session.tasks.*`` and ``session.fleet.*``: sub-agents and commands in the background."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import Field, StrictBool

from jumpseat_protocol.server import EmptyResult
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.wire import Method, WireModel


class TaskParams(WireModel):
    session_id: str
    id: str


class StartAgentParams(WireModel):
    """``agent_type`` is a built-in agent or a custom one; ``name`` is shown to users and need not be unique."""

    session_id: str
    agent_type: str
    prompt: str = Field(min_length=1)
    name: str = Field(min_length=1)
    description: str | None = None
    model: str | None = None


class StartAgentResult(WireModel):
    agent_id: str


class TaskInfo(WireModel):
    """A sub-agent or a shell command. Timestamps are in ISO 8601.

    Agents: ``prompt`` is the latest message, ``idle`` agents have answered it. Commands: those of ``bash`` that run
    in the background, or whose output was not read yet.
    """

    type: Literal["agent", "shell"]
    id: str
    description: str
    status: Literal["running", "idle", "completed", "failed", "cancelled"]
    started_at: str
    execution_mode: Literal["sync", "background"] | None = None
    can_promote_to_background: StrictBool | None = None
    completed_at: str | None = None
    tool_call_id: str | None = None
    display_name: str | None = None
    agent_type: str | None = None
    prompt: str | None = None
    model: str | None = None
    resolved_model: str | None = None
    latest_response: str | None = None
    error: str | None = None
    active_started_at: str | None = None
    active_time_ms: int | None = None
    idle_since: str | None = None
    command: str | None = None
    attachment_mode: Literal["attached", "detached"] | None = None


class TaskListResult(WireModel):
    tasks: list[TaskInfo]


class TaskProgressResult(WireModel):
    """``progress`` has the ``type`` of the task: ``recentActivity``, a list of ``{message, timestamp}``, for an
    agent, ``recentOutput`` for a command. It is ``null`` for an unknown task.
    """

    sent_as_null = ("progress",)

    progress: dict[str, Any] | None = None


class CurrentTaskResult(WireModel):
    """``task`` is left out if no call waits for an agent."""

    task: TaskInfo | None = None


class PromoteResult(WireModel):
    promoted: StrictBool


class CancelTaskResult(WireModel):
    cancelled: StrictBool


class RemoveTaskResult(WireModel):
    removed: StrictBool


class SendTaskMessageParams(WireModel):
    session_id: str
    id: str
    message: str = Field(min_length=1)
    from_agent_id: str | None = None


class SendTaskMessageResult(WireModel):
    sent: StrictBool
    error: str | None = None


class FleetStartParams(WireModel):
    session_id: str
    prompt: str | None = None


class FleetStartResult(WireModel):
    started: StrictBool


METHODS: Final[Mapping[str, Method]] = {
    "session.tasks.startAgent": Method(StartAgentParams, StartAgentResult),
    "session.tasks.list": Method(SessionParams, TaskListResult),
    "session.tasks.refresh": Method(SessionParams, EmptyResult),
    "session.tasks.waitForPending": Method(SessionParams, EmptyResult),
    "session.tasks.getProgress": Method(TaskParams, TaskProgressResult),
    "session.tasks.getCurrentPromotable": Method(SessionParams, CurrentTaskResult),
    "session.tasks.promoteCurrentToBackground": Method(SessionParams, CurrentTaskResult),
    "session.tasks.promoteToBackground": Method(TaskParams, PromoteResult),
    "session.tasks.cancel": Method(TaskParams, CancelTaskResult),
    "session.tasks.remove": Method(TaskParams, RemoveTaskResult),
    "session.tasks.sendMessage": Method(SendTaskMessageParams, SendTaskMessageResult),
    "session.cancelAllBackgroundAgents": Method(SessionParams, int),
    "session.fleet.start": Method(FleetStartParams, FleetStartResult),
}
