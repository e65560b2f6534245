"""``session.tasks.*`` and ``session.fleet.*``: sub-agents and commands in the background."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Field, StrictBool

from jumpseat_protocol.server import EmptyResult
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.wire import Method, Number, WireModel


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
    pid: int | None = None


ClientTaskStatus: TypeAlias = Literal["running", "idle", "completed", "failed", "cancelled", "orphaned"]
"""``orphaned``: the client of the task has left the session, and nobody knows the state of the task."""


class ClientTaskOwner(WireModel):
    """The client of a task: the number of its connection, and whether it is attached to the session."""

    participant_id: str
    join_id: str
    kind: Literal["sdk"] = "sdk"
    presence: Literal["connected", "disconnected"]
    disconnected_at: str | None = None


class ClientTaskInfo(WireModel):
    """A task that a client carries out itself. Timestamps are in ISO 8601.

    ``client_task_id`` is the client's name for it, ``sequence`` the number of its latest update.
    """

    type: Literal["client"] = "client"
    id: str
    client_task_id: str
    display_name: str | None = None
    description: str
    status: ClientTaskStatus
    owner: ClientTaskOwner
    started_at: str
    updated_at: str
    completed_at: str | None = None
    active_time_ms: int
    active_started_at: str | None = None
    idle_since: str | None = None
    orphaned_at: str | None = None
    execution_mode: Literal["background"] = "background"
    can_cancel: StrictBool
    sequence: int
    result: Any = None
    error: str | None = None
    error_code: str | None = None
    cancellation_reason: str | None = None


class RegisterTaskParams(WireModel):
    """``client_task_id`` is the client's own: registering it again returns the same task.

    ``expected_sequence`` is the number of the latest update that the client knows, 0 for a new task.
    """

    session_id: str
    type: Literal["client"] = "client"
    client_task_id: str = Field(min_length=1, max_length=256)
    description: str = Field(max_length=4096)
    display_name: str | None = Field(default=None, max_length=256)
    cancellable: StrictBool
    expected_sequence: int | None = None


class RegisterTaskResult(WireModel):
    """``created`` is false for a task that the client has registered before; orphaned are not ``reclaimed``."""

    task: ClientTaskInfo
    created: StrictBool
    reclaimed: StrictBool = False


class UpdateTaskResult(WireModel):
    """``duplicate`` is true for the latest update, sent again; then nothing was ``applied``."""

    task: ClientTaskInfo
    applied: StrictBool
    duplicate: StrictBool


class _TaskUpdate(WireModel):
    message: str | None = Field(default=None, max_length=4096)


class TaskProgressUpdate(_TaskUpdate):
    """``null`` resets ``phase`` and ``percentage``, which is from 0 to 100."""

    taken_back = MappingProxyType({"phase": "", "percentage": "none"})

    kind: Literal["progress"]
    status: Literal["running", "idle"] | None = None
    phase: str | None = Field(default=None, max_length=256)
    percentage: Annotated[Number, Field(ge=0, le=100)] | Literal["none"] | None = None


class TaskCompleted(_TaskUpdate):
    """``result`` is any JSON."""

    kind: Literal["completed"]
    result: Any = None


class TaskFailed(_TaskUpdate):
    kind: Literal["failed"]
    error: str = Field(max_length=4096)
    code: str | None = Field(default=None, max_length=256)


class TaskCancelled(_TaskUpdate):
    kind: Literal["cancelled"]
    reason: str | None = Field(default=None, max_length=4096)


TaskUpdate: TypeAlias = TaskProgressUpdate | TaskCompleted | TaskFailed | TaskCancelled


class UpdateTaskParams(WireModel):
    """``sequence`` counts the updates of a task: each has a higher number than the one before."""

    session_id: str
    id: str
    sequence: int = Field(ge=0)
    update: Annotated[TaskUpdate, Field(discriminator="kind")]


class ReadOutputParams(TaskParams):
    """``cursor`` is that of the last read; without one, the read begins with the oldest output.

    ``wait_ms`` is the longest wait for output, if there is none after ``cursor``.
    """

    cursor: str | None = None
    wait_ms: int = Field(default=0, ge=0, le=30_000)


class OutputExit(WireModel):
    status: Literal["completed", "failed", "cancelled"]
    exit_code: int | None = None


class ReadOutputResult(WireModel):
    """At most 64 KiB of ``text``; ``exit`` is set if the command has ended and nothing follows."""

    cursor: str
    text: str
    exit: OutputExit | None = None


class TaskListResult(WireModel):
    tasks: list[TaskInfo | ClientTaskInfo]


class TaskProgressResult(WireModel):
    """``progress`` has the ``type`` of the task: ``recentActivity``, a list of ``{message, timestamp}``, for an
    agent and a task of a client, with ``{status, sequence, updatedAt, phase?, percentage?, lastMessage?}`` of the
    latter; ``recentOutput`` and ``pid`` for a command. It is ``null`` for an unknown task.
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
    """``attachments`` and ``billable`` are as in ``session.send``.

    With ``wait``, the answer comes when the run has ended.
    """

    session_id: str
    prompt: str | None = None
    attachments: list[dict[str, Any]] | None = None
    billable: StrictBool = True
    wait: StrictBool = False


class FleetStartResult(WireModel):
    started: StrictBool


METHODS: Final[Mapping[str, Method]] = {
    "session.tasks.startAgent": Method(StartAgentParams, StartAgentResult),
    "session.tasks.list": Method(SessionParams, TaskListResult),
    "session.tasks.register": Method(RegisterTaskParams, RegisterTaskResult),
    "session.tasks.update": Method(UpdateTaskParams, UpdateTaskResult),
    "session.tasks.readOutput": Method(ReadOutputParams, ReadOutputResult),
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
