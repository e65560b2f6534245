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
    """The id of the task."""


class StartAgentParams(WireModel):
    """``agent_type`` is a built-in agent or a custom one; ``name`` is shown to users and need not be unique."""

    session_id: str
    agent_type: str
    """The name of a built-in or custom agent."""
    prompt: str = Field(min_length=1)
    """Its first prompt."""
    name: str = Field(min_length=1)
    """The name that people see."""
    description: str | None = None
    model: str | None = None
    """The id of its model."""


class StartAgentResult(WireModel):
    agent_id: str
    """The id of the agent, which is the id of its task."""


class TaskInfo(WireModel):
    """A sub-agent or a shell command. Timestamps are in ISO 8601.

    Agents: ``prompt`` is the latest message, ``idle`` agents have answered it. Commands: those of ``bash`` that run
    in the background, or whose output was not read yet.
    """

    type: Literal["agent", "shell"]
    id: str
    """The id of the task."""
    description: str
    status: Literal["running", "idle", "completed", "failed", "cancelled"]
    """Its state."""
    started_at: str
    """When it began."""
    execution_mode: Literal["sync", "background"] | None = None
    """Whether the call that started it waits for it."""
    can_promote_to_background: StrictBool | None = None
    """Whether that call can go on without it."""
    completed_at: str | None = None
    """When it ended."""
    tool_call_id: str | None = None
    display_name: str | None = None
    agent_type: str | None = None
    """The type of the agent."""
    prompt: str | None = None
    """The agent's latest prompt."""
    model: str | None = None
    """The model that was asked for."""
    resolved_model: str | None = None
    """The id of the model that it uses."""
    latest_response: str | None = None
    """The agent's latest answer."""
    error: str | None = None
    active_started_at: str | None = None
    """When it last began to work."""
    active_time_ms: int | None = None
    """How long it has worked, in milliseconds."""
    idle_since: str | None = None
    """Since when it waits for a prompt."""
    command: str | None = None
    """The command line."""
    attachment_mode: Literal["attached", "detached"] | None = None
    """Whether the command ends with the session."""
    pid: int | None = None
    """The process id."""


ClientTaskStatus: TypeAlias = Literal["running", "idle", "completed", "failed", "cancelled", "orphaned"]
"""``orphaned``: the client of the task has left the session, and nobody knows the state of the task."""


class ClientTaskOwner(WireModel):
    """The client of a task: the number of its connection, and whether it is attached to the session."""

    participant_id: str
    """The id of the client."""
    join_id: str
    """The number of its connection."""
    kind: Literal["sdk"] = "sdk"
    presence: Literal["connected", "disconnected"]
    """Whether it is attached to the session."""
    disconnected_at: str | None = None
    """When it left."""


class ClientTaskInfo(WireModel):
    """A task that a client carries out itself. Timestamps are in ISO 8601.

    ``client_task_id`` is the client's name for it, ``sequence`` the number of its latest update.
    """

    type: Literal["client"] = "client"
    id: str
    """The session's id of the task."""
    client_task_id: str
    """The client's id of the task."""
    display_name: str | None = None
    description: str
    status: ClientTaskStatus
    """Its state."""
    owner: ClientTaskOwner
    """The client that carries it out."""
    started_at: str
    """When it began."""
    updated_at: str
    """When it was last updated."""
    completed_at: str | None = None
    """When it ended."""
    active_time_ms: int
    """How long it has worked, in milliseconds."""
    active_started_at: str | None = None
    """When it last began to work."""
    idle_since: str | None = None
    """Since when it waits."""
    orphaned_at: str | None = None
    """Since when it has no client."""
    execution_mode: Literal["background"] = "background"
    """Always in the background."""
    can_cancel: StrictBool
    """Whether the client can stop it."""
    sequence: int
    """The number of its latest update."""
    result: Any = None
    """What it has brought."""
    error: str | None = None
    error_code: str | None = None
    """The client's code of the failure."""
    cancellation_reason: str | None = None
    """Why it was cancelled."""


class RegisterTaskParams(WireModel):
    """``client_task_id`` is the client's own: registering it again returns the same task.

    ``expected_sequence`` is the number of the latest update that the client knows, 0 for a new task.
    """

    session_id: str
    type: Literal["client"] = "client"
    client_task_id: str = Field(min_length=1, max_length=256)
    """The client's id of the task."""
    description: str = Field(max_length=4096)
    display_name: str | None = Field(default=None, max_length=256)
    cancellable: StrictBool
    """Whether the client can stop it."""
    expected_sequence: int | None = None
    """The number of the latest update that the client knows."""


class RegisterTaskResult(WireModel):
    """``created`` is false for a task that the client has registered before; orphaned are not ``reclaimed``."""

    task: ClientTaskInfo
    """The task."""
    created: StrictBool
    """Whether it is new."""
    reclaimed: StrictBool = False
    """Whether it had lost its client."""


class UpdateTaskResult(WireModel):
    """``duplicate`` is true for the latest update, sent again; then nothing was ``applied``."""

    task: ClientTaskInfo
    """The task."""
    applied: StrictBool
    """Whether the update was new."""
    duplicate: StrictBool
    """Whether it was the latest update again."""


class _TaskUpdate(WireModel):
    message: str | None = Field(default=None, max_length=4096)
    """What the task is doing, for people."""


class TaskProgressUpdate(_TaskUpdate):
    """``null`` resets ``phase`` and ``percentage``, which is from 0 to 100."""

    taken_back = MappingProxyType({"phase": "", "percentage": "none"})

    kind: Literal["progress"]
    status: Literal["running", "idle"] | None = None
    """Its state."""
    phase: str | None = Field(default=None, max_length=256)
    """The part of the work that it is at."""
    percentage: Annotated[Number, Field(ge=0, le=100)] | Literal["none"] | None = None
    """How much is done, from 0 to 100."""


class TaskCompleted(_TaskUpdate):
    """``result`` is any JSON."""

    kind: Literal["completed"]
    result: Any = None
    """What it has brought."""


class TaskFailed(_TaskUpdate):
    """The client's task has failed."""

    kind: Literal["failed"]
    error: str = Field(max_length=4096)
    code: str | None = Field(default=None, max_length=256)
    """The client's code of the failure."""


class TaskCancelled(_TaskUpdate):
    """The client's task was cancelled."""

    kind: Literal["cancelled"]
    reason: str | None = Field(default=None, max_length=4096)
    """Why it was cancelled."""


TaskUpdate: TypeAlias = TaskProgressUpdate | TaskCompleted | TaskFailed | TaskCancelled


class UpdateTaskParams(WireModel):
    """``sequence`` counts the updates of a task: each has a higher number than the one before."""

    session_id: str
    id: str
    """The session's id of the task."""
    sequence: int = Field(ge=0)
    """The number of the update, higher than the one before."""
    update: Annotated[TaskUpdate, Field(discriminator="kind")]
    """The update."""


class ReadOutputParams(TaskParams):
    """``cursor`` is that of the last read; without one, the read begins with the oldest output.

    ``wait_ms`` is the longest wait for output, if there is none after ``cursor``.
    """

    cursor: str | None = None
    wait_ms: int = Field(default=0, ge=0, le=30_000)
    """How long to wait for output, in milliseconds."""


class OutputExit(WireModel):
    """The end of a command in the background."""

    status: Literal["completed", "failed", "cancelled"]
    """How the command ended."""
    exit_code: int | None = None
    """Its exit code."""


class ReadOutputResult(WireModel):
    """At most 64 KiB of ``text``; ``exit`` is set if the command has ended and nothing follows."""

    cursor: str
    text: str
    """The output, at most 64 KiB."""
    exit: OutputExit | None = None
    """How the command ended; missing while it runs."""


class TaskListResult(WireModel):
    tasks: list[TaskInfo | ClientTaskInfo]
    """The tasks."""


class TaskProgressResult(WireModel):
    """``progress`` has the ``type`` of the task: ``recentActivity``, a list of ``{message, timestamp}``, for an
    agent and a task of a client, with ``{status, sequence, updatedAt, phase?, percentage?, lastMessage?}`` of the
    latter; ``recentOutput`` and ``pid`` for a command. It is ``null`` for an unknown task.
    """

    sent_as_null = ("progress",)

    progress: dict[str, Any] | None = None
    """What the task has done lately."""


class CurrentTaskResult(WireModel):
    """``task`` is left out if no call waits for an agent."""

    task: TaskInfo | None = None
    """The task."""


class PromoteResult(WireModel):
    promoted: StrictBool
    """Whether the call goes on without the task."""


class CancelTaskResult(WireModel):
    cancelled: StrictBool
    """Whether the task was stopped."""


class RemoveTaskResult(WireModel):
    removed: StrictBool
    """Whether the task was removed."""


class SendTaskMessageParams(WireModel):
    session_id: str
    id: str
    """The id of the agent."""
    message: str = Field(min_length=1)
    """The prompt."""
    from_agent_id: str | None = None
    """The agent that sends it."""


class SendTaskMessageResult(WireModel):
    sent: StrictBool
    """Whether the agent takes it."""
    error: str | None = None


class FleetStartParams(WireModel):
    """``attachments`` and ``billable`` are as in ``session.send``.

    With ``wait``, the answer comes when the run has ended.
    """

    session_id: str
    prompt: str | None = None
    """What the agents work on."""
    attachments: list[dict[str, Any]] | None = None
    billable: StrictBool = True
    """Whether a Copilot plan counts it as a request."""
    wait: StrictBool = False
    """Whether the answer comes when the run has ended."""


class FleetStartResult(WireModel):
    started: StrictBool
    """Whether it was started."""


METHODS: Final[Mapping[str, Method]] = {
    "session.tasks.startAgent": Method(StartAgentParams, StartAgentResult, "Start a sub-agent in the background."),
    "session.tasks.list": Method(
        SessionParams, TaskListResult, "List the tasks: sub-agents, commands, and work of clients."
    ),
    "session.tasks.register": Method(
        RegisterTaskParams, RegisterTaskResult, "Register work that the client carries out."
    ),
    "session.tasks.update": Method(
        UpdateTaskParams, UpdateTaskResult, "Report the progress or the end of such work."
    ),
    "session.tasks.readOutput": Method(ReadOutputParams, ReadOutputResult, "Read the output of a command."),
    "session.tasks.refresh": Method(SessionParams, EmptyResult, "Do nothing: the list is always up to date."),
    "session.tasks.waitForPending": Method(
        SessionParams, EmptyResult, "Wait until no task works and the model has been told about all."
    ),
    "session.tasks.getProgress": Method(TaskParams, TaskProgressResult, "Return what a task has done lately."),
    "session.tasks.getCurrentPromotable": Method(
        SessionParams, CurrentTaskResult, "Return the sub-agent that a running call waits for."
    ),
    "session.tasks.promoteCurrentToBackground": Method(
        SessionParams, CurrentTaskResult, "Let the call that waits for a sub-agent end, and the agent work on."
    ),
    "session.tasks.promoteToBackground": Method(
        TaskParams, PromoteResult, "Let the call that waits for a sub-agent end, and the agent work on."
    ),
    "session.tasks.cancel": Method(TaskParams, CancelTaskResult, "Stop a task."),
    "session.tasks.remove": Method(TaskParams, RemoveTaskResult, "Remove a task that has ended."),
    "session.tasks.sendMessage": Method(SendTaskMessageParams, SendTaskMessageResult, "Send a sub-agent a prompt."),
    "session.cancelAllBackgroundAgents": Method(SessionParams, int, "Stop all sub-agents in the background."),
    "session.fleet.start": Method(
        FleetStartParams, FleetStartResult, "Queue a prompt that makes the model lead sub-agents."
    ),
}
