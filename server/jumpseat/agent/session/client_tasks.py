"""Tasks that clients carry out outside of this process and register with a session, which lists them.

A task belongs to the client that has registered it, under an id that the client chooses. Only that client changes
it, with numbered updates, so that an update that is sent twice counts once. When the client leaves the session, its
unfinished tasks are orphaned: their state is unknown. A session neither waits for such tasks nor stores them.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

import anyio
from msgspec import Struct, field

from jumpseat.agent.client import Attachment, Client
from jumpseat.agent.clock import utc_now
from jumpseat.agent.session.clients import Clients
from jumpseat.errors import ClientCallError, InvalidRequestError, UnknownItemError
from jumpseat_protocol import events
from jumpseat_protocol.callbacks import CancelClientTaskParams
from jumpseat_protocol.tasks import (
    ClientTaskStatus,
    RegisterTaskParams,
    TaskCancelled,
    TaskCompleted,
    TaskFailed,
    TaskUpdate,
)

MAX_TASKS: Final = 256
"""Limit of the tasks of one session; the oldest finished ones are forgotten first."""

MAX_ACTIVITY: Final = 20
"""The number of messages of a task that are kept."""


class ClientTask(Struct, eq=False):
    """A task of a client. Times are in ISO 8601; ``sequence`` is the number of the latest update."""

    id: str
    key: str
    description: str
    name: str | None
    cancellable: bool
    owner: Client
    owner_id: str
    started_at: str
    updated_at: str
    active_since: str | None
    begun_s: float
    join_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    status: ClientTaskStatus = "running"
    sequence: int = 0
    connected: bool = True
    left_at: str | None = None
    idle_since: str | None = None
    completed_at: str | None = None
    active_s: float = 0.0
    phase: str | None = None
    percentage: float | None = None
    activity: deque[tuple[str, str]] = field(default_factory=lambda: deque[tuple[str, str]](maxlen=MAX_ACTIVITY))
    result: object = None
    error: str | None = None
    error_code: str | None = None
    cancellation_reason: str | None = None

    @property
    def active(self) -> bool:
        """Return whether the client still works on the task, as far as is known."""
        return self.status in ("running", "idle")

    def elapsed_s(self, now_s: float) -> float:
        """Return the seconds in which the task was running."""
        return self.active_s + (now_s - self.begun_s if self.status == "running" else 0.0)


class ClientTasks:
    """The tasks of the clients of one session."""

    def __init__(self, session_id: str, clients: Clients, emit: Callable[[events.EventPayload], object]) -> None:
        self._session_id = session_id
        self._clients = clients
        self._emit = emit
        self._tasks: dict[str, ClientTask] = {}
        clients.on_change.append(self._orphan)

    def __iter__(self) -> Iterator[ClientTask]:
        return iter(list(self._tasks.values()))

    def find(self, task_id: str) -> ClientTask | None:
        """Return a task by the id that the session has given it."""
        return self._tasks.get(task_id)

    def register(self, owner: Attachment, params: RegisterTaskParams) -> tuple[ClientTask, bool]:
        """Add a task of a client, or return the one that it has registered under the same id before.

        Returns:
            The task, and whether it is new.

        Raises:
            InvalidRequestError: the task has another sequence number than expected, or too many tasks are active.
        """
        known = next((one for one in self if one.owner is owner.client and one.key == params.client_task_id), None)
        expected = params.expected_sequence
        if expected is not None and expected != (0 if known is None else known.sequence):
            has = "is not registered" if known is None else f"has the sequence {known.sequence}"
            raise InvalidRequestError(f"client task {params.client_task_id!r} {has}, not {expected}")
        if known is not None and known.connected:
            return known, False
        self._make_room()
        now = utc_now()
        task = ClientTask(
            id=str(uuid.uuid4()),
            key=params.client_task_id,
            description=params.description,
            name=params.display_name,
            cancellable=params.cancellable,
            owner=owner.client,
            owner_id=owner.canvas_provider,
            started_at=now,
            updated_at=now,
            active_since=now,
            begun_s=anyio.current_time(),
        )
        self._tasks[task.id] = task
        self._emit(events.BackgroundTasksChanged())
        return task, True

    def update(self, client: Client, task_id: str, sequence: int, update: TaskUpdate) -> tuple[ClientTask, bool]:
        """Apply an update of the client that owns a task; the latest one may be sent again.

        Returns:
            The task, and whether the update is new.

        Raises:
            UnknownItemError: the client has no such task.
            InvalidRequestError: the update is older than the latest one, or the task has ended.
        """
        task = self._tasks.get(task_id)
        if task is None or task.owner is not client:
            raise UnknownItemError("client task", task_id)
        if sequence == task.sequence:
            return task, False
        if sequence < task.sequence:
            raise InvalidRequestError(f"sequence {sequence} is older than that of the task, {task.sequence}")
        if not task.active:
            raise InvalidRequestError(f"the client task {task_id!r} has ended: it is {task.status}")
        task.sequence, task.updated_at = sequence, utc_now()
        if update.message:
            task.activity.append((update.message, task.updated_at))
        match update:
            case TaskCompleted():
                task.result = update.result
                self._change(task, "completed")
            case TaskFailed():
                task.error, task.error_code = update.error, update.code
                self._change(task, "failed")
            case TaskCancelled():
                task.cancellation_reason = update.reason
                self._change(task, "cancelled")
            case _:
                if update.phase is not None:
                    task.phase = update.phase or None
                if update.percentage is not None:
                    task.percentage = None if update.percentage == "none" else update.percentage
                if update.status is not None:
                    self._change(task, update.status)
        self._emit(events.BackgroundTasksChanged())
        return task, True

    async def cancel(self, task: ClientTask) -> bool:
        """Ask the owner of a task to stop it; returns whether the owner confirms that it has stopped."""
        if not (task.active and task.cancellable and task.connected):
            return False
        params = CancelClientTaskParams(
            session_id=self._session_id,
            id=task.id,
            client_task_id=task.key,
            cancellation_id=str(uuid.uuid4()),
            reason="cancel_requested",
        )
        try:
            answer = await task.owner.cancel_task(params)
        except ClientCallError:
            return False
        if answer.cancelled and task.active:
            self._change(task, "cancelled")
            self._emit(events.BackgroundTasksChanged())
        return answer.cancelled

    def remove(self, task: ClientTask) -> bool:
        """Forget a task that has ended or is orphaned; returns ``False`` for any other."""
        if task.active or self._tasks.pop(task.id, None) is None:
            return False
        self._emit(events.BackgroundTasksChanged())
        return True

    def _orphan(self) -> None:
        """Mark the unfinished tasks of clients that have left."""
        orphaned = [task for task in self if task.connected and task.owner not in self._clients]
        for task in orphaned:
            task.connected, task.left_at = False, utc_now()
            if task.active:
                self._change(task, "orphaned")
        if orphaned:
            self._emit(events.BackgroundTasksChanged())

    def _change(self, task: ClientTask, status: ClientTaskStatus) -> None:
        if status == task.status:
            return
        now, now_s = utc_now(), anyio.current_time()
        task.active_s, task.begun_s = task.elapsed_s(now_s), now_s
        task.status, task.updated_at = status, now
        task.active_since = now if status == "running" else None
        task.idle_since = now if status == "idle" else None
        if not task.active and status != "orphaned":
            task.completed_at = now

    def _make_room(self) -> None:
        if len(self._tasks) < MAX_TASKS:
            return
        ended = next((task for task in self if not task.active), None)
        if ended is None:
            raise InvalidRequestError(f"the session has {MAX_TASKS} active client tasks already: end one first")
        del self._tasks[ended.id]
