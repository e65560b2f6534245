"""The messages of the Tasks extension (SEP-2663): a server answers a call with a task, and its state later.

https://modelcontextprotocol.io/extensions/tasks/overview
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

import mcp.types as types
from mcp.client.extension import ClaimContext, ResultClaim

EXTENSION: Final = "io.modelcontextprotocol/tasks"
Status: TypeAlias = Literal["working", "input_required", "completed", "failed", "cancelled"]


class Task(types.Result):
    """The members that all messages about a task have. Times are in milliseconds."""

    task_id: str
    status: Status
    status_message: str | None = None
    ttl_ms: int | None = None
    poll_interval_ms: int | None = None


class CreatedTask(Task):
    """The answer to a call: its result will be that of a task."""

    result_type: Literal["task"]


class TaskState(Task):
    """The state of a task. ``result`` and ``error`` are those of the call, ``asked`` is what the server asks."""

    result: dict[str, Any] | None = None
    error: types.ErrorData | None = None
    input_requests: types.InputRequests | None = None


class TaskParams(types.RequestParams):
    task_id: str


class UpdateParams(TaskParams):
    input_responses: dict[str, Any]


class GetTask(types.Request[TaskParams, Literal["tasks/get"]]):
    method: Literal["tasks/get"] = "tasks/get"
    params: TaskParams
    name_param = "taskId"


class CancelTask(types.Request[TaskParams, Literal["tasks/cancel"]]):
    method: Literal["tasks/cancel"] = "tasks/cancel"
    params: TaskParams
    name_param = "taskId"


class UpdateTask(types.Request[UpdateParams, Literal["tasks/update"]]):
    method: Literal["tasks/update"] = "tasks/update"
    params: UpdateParams
    name_param = "taskId"


async def _never(_task: CreatedTask, _ctx: ClaimContext) -> types.CallToolResult:
    raise AssertionError("tasks are followed by this package")


CLAIMS: Final = {EXTENSION: (ResultClaim(result_type="task", model=CreatedTask, resolve=_never),)}
"""What makes the ``mcp`` package announce the extension to servers of revisions that have it, and to no others."""
