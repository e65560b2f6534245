"""Follow a task of a server until its result is there, over as many connections as that takes."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final

import anyio
import mcp.types as types
from anyio.abc import TaskGroup
from pydantic import ValidationError

from jumpseat.mcp.client import CallTimeoutError, McpClient, Progress, RefusedError, ServerGoneError
from jumpseat.mcp.task_shapes import CancelTask, GetTask, Task, TaskParams, TaskState, UpdateParams, UpdateTask

log = logging.getLogger(__name__)

POLL_S: Final = 1.0
"""The pause between two requests for the state, in seconds, if the server suggests none."""
SHORTEST_POLL_S: Final = 0.25
LONGEST_POLL_S: Final = 60.0
REQUEST_S: Final = 30.0
CANCEL_S: Final = 5.0
"""The time for the request that cancels a task, in seconds."""


class TaskFollower:
    """Follows one task.

    ``client`` waits for a connection to the server, ``tasks`` outlives the call. ``stays`` returns whether the
    session goes on: a task of one that is being closed is followed by the next process.
    """

    def __init__(
        self,
        task_id: str,
        client: Callable[[], Awaitable[McpClient]],
        tasks: TaskGroup,
        stays: Callable[[], bool],
        on_progress: Progress | None,
    ) -> None:
        self._params = TaskParams(task_id=task_id)
        self._client = client
        self._tasks = tasks
        self._stays = stays
        self._on_progress = on_progress
        self._answered: set[str] = set()
        self._polls = 0

    async def follow(self, state: Task | None = None) -> types.CallToolResult:
        """Return the result of the task. If the caller is cancelled, the server is asked to stop.

        ``state`` is the state that is known already.

        Raises:
            RefusedError: the call has failed, or the server does not know the task any more.
            NotConnectedError: the server is gone for longer than a reconnect takes.
        """
        try:
            while True:
                if state is not None:
                    self._show(state)
                    if isinstance(state, TaskState) and (result := await self._result(state)) is not None:
                        return result
                    await anyio.sleep(_pause(state))
                state = await self._get()
        except anyio.get_cancelled_exc_class():
            if self._stays():
                self._tasks.start_soon(self._cancel)
            raise

    async def _get(self) -> TaskState | None:
        """Ask for the state; ``None`` if the connection was lost: the task goes on without it."""
        client = await self._client()
        try:
            return await client.ask(GetTask(params=self._params), TaskState, timeout_s=REQUEST_S)
        except (ServerGoneError, CallTimeoutError):
            await anyio.sleep(SHORTEST_POLL_S)
            return None

    async def _result(self, state: TaskState) -> types.CallToolResult | None:
        """Return the result of the call, if there is one, after giving the server what it asks for."""
        match state.status:
            case "completed":
                try:
                    return types.CallToolResult.model_validate(state.result, by_name=False)
                except ValidationError:
                    raise RefusedError("the result of the task does not match the protocol") from None
            case "failed":
                error = state.error
                raise RefusedError(error.message if error else "the task failed", error.code if error else None)
            case "cancelled":
                raise RefusedError("the server has cancelled the task")
            case "input_required":
                await self._give_input(state.input_requests or {})
            case "working":
                pass
        return None

    async def _give_input(self, asked: types.InputRequests) -> None:
        """Answer new questions: each is asked once, also if the server repeats it in its next states."""
        new = {key: question for key, question in asked.items() if key not in self._answered}
        if not new:
            return
        client = await self._client()
        self._answered.update(new)
        responses = await client.answers_to(new)
        params = UpdateParams(task_id=self._params.task_id, input_responses=responses)
        try:
            await client.ask(UpdateTask(params=params), types.EmptyResult, timeout_s=REQUEST_S)
        except (ServerGoneError, CallTimeoutError):
            # The next state tells whether the answers have arrived.
            self._answered.difference_update(new)

    def _show(self, state: Task) -> None:
        self._polls += 1
        if self._on_progress is not None and state.status_message:
            self._on_progress(float(self._polls), None, state.status_message)

    async def _cancel(self) -> None:
        with anyio.move_on_after(CANCEL_S):
            try:
                client = await self._client()
                await client.ask(CancelTask(params=self._params), types.EmptyResult, timeout_s=CANCEL_S)
            except Exception as error:
                # The server stops it at its end of life.
                log.info("a task of an MCP server could not be cancelled: %s", type(error).__name__)


def _pause(state: Task) -> float:
    """Return the pause before the next request, in seconds."""
    wanted = POLL_S if state.poll_interval_ms is None else state.poll_interval_ms / 1000
    return min(max(wanted, SHORTEST_POLL_S), LONGEST_POLL_S)
