"""The queue of a session: prompts and slash commands, and their outcomes.

Items run one after the other, in one task. The queue calls :class:`Callbacks` to run them.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import anyio
from anyio.abc import TaskGroup

from jumpseat.agent.observation import TraceContext
from jumpseat.errors import SessionNotFoundError
from jumpseat_protocol import events
from jumpseat_protocol.sessions import HostedToolConfig, ResponseFormatConfig, ToolChoiceConfig


@dataclass(slots=True)
class Run:
    """The outcome of a prompt or a command; complete when ``done`` is set.

    ``steered_by`` are the runs of the prompts that steered this one; they end with the same outcome.
    """

    done: anyio.Event = field(default_factory=anyio.Event)
    aborted: bool = False
    error: events.Event | None = None
    answer: events.Event | None = None
    idle: events.Event | None = None
    steered_by: list[Run] = field(default_factory=lambda: list[Run]())

    def end(self) -> None:
        """Copy the outcome to the steering runs, and set ``done`` on all of them."""
        for run in self.steered_by:
            run.aborted, run.error, run.answer, run.idle = self.aborted, self.error, self.answer, self.idle
            run.done.set()
        self.done.set()


@dataclass(slots=True)
class Prompt:
    """A queued prompt. ``headers`` are sent to the provider with this prompt's model calls only.

    ``adapter_settings`` override those of the session one by one. ``called`` is set once the model has answered a
    call, ``repaired`` once the model was asked to correct the format of its answer. ``trace`` is the client's.
    ``display_text`` is what users see instead of the text, ``source`` names where a prompt comes from that is not
    the user's. ``notification`` takes the place of the user's message: the model gets its content, unchanged.
    """

    text: str
    attachments: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    agent_mode: events.AgentMode | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    tool_choice: ToolChoiceConfig | None = None
    hosted_tools: list[str | HostedToolConfig] | None = None
    response_format: ResponseFormatConfig | None = None
    repaired: bool = False
    called: bool = False
    adapter_settings: dict[str, Any] = field(default_factory=dict[str, Any])
    delivery: events.Delivery = "idle"
    trace: TraceContext | None = None
    display_text: str | None = None
    source: str | None = None
    notification: events.SystemNotification | None = None
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    interaction_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    run: Run = field(default_factory=lambda: Run())


@dataclass(slots=True)
class QueuedCommand:
    """A queued slash command. ``text`` begins with the slash; ``display_text`` is shown to users."""

    text: str
    display_text: str
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    run: Run = field(default_factory=lambda: Run())


QueueItem: TypeAlias = Prompt | QueuedCommand


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Functions that a queue calls.

    ``run_command`` returns whether the commands queued behind it have to wait until something else is queued.
    ``on_change`` is called when the waiting items change. ``end_run`` publishes the end of a run, which was aborted
    if its argument is true, and returns that event; ``None`` if :meth:`Queue.settle` follows, or another run.
    """

    run_prompt: Callable[[Prompt], Awaitable[None]]
    run_command: Callable[[QueuedCommand], Awaitable[bool]]
    on_change: Callable[[], object]
    end_run: Callable[[bool], events.Event | None]


class Queue:
    """The prompts and commands of one session. A *run* of the queue ends when no item is left to run."""

    def __init__(self, session_id: str, tasks: TaskGroup, callbacks: Callbacks) -> None:
        self._session_id = session_id
        self._tasks = tasks
        self._callbacks = callbacks
        self.closed = False
        """Set by :meth:`close`: no item can be added any more."""
        self.abort_reason = "user_initiated"
        """The reason of the last abort."""
        self._waiting: deque[QueueItem] = deque()
        # Commands at the head of the queue wait until another item is added.
        self._commands_paused = False
        self._steering: list[Prompt] = []
        # The scope of the running item; created before its task starts, so that an early abort is not lost.
        self._scope = anyio.CancelScope()
        self._current: QueueItem | None = None
        self._stopped = anyio.Event()
        self._stopped.set()
        # The outcomes of runs whose end is not published yet.
        self._unsettled: list[Run] = []

    # --- the running item ---------------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Return whether a run is in progress or about to start."""
        return not self._stopped.is_set()

    @property
    def prompting(self) -> bool:
        """Return whether a prompt runs or is about to; false while a command runs."""
        return self.running and not isinstance(self._current, QueuedCommand)

    @property
    def prompt(self) -> Prompt | None:
        """Return the running prompt, if any."""
        return self._current if isinstance(self._current, Prompt) else None

    async def wait(self) -> None:
        """Wait until no run is in progress."""
        await self._stopped.wait()

    @property
    def unsettled(self) -> list[Run]:
        """Return the outcomes of runs whose end is not published yet."""
        return list(self._unsettled)

    def settle(self, idle: events.Event, answer: events.Event | None = None) -> None:
        """End the runs that wait for ``idle``; a later ``answer`` takes the place of theirs."""
        unsettled, self._unsettled = self._unsettled, []
        for run in unsettled:
            run.idle, run.answer = idle, answer or run.answer
            run.end()

    def abort(self, reason: str) -> Awaitable[None]:
        """Abort the run and drop the waiting items. Items added after this call are not affected.

        Returns:
            An awaitable that ends when the run has ended; at once if none is running.
        """
        if self.running:
            if not self._scope.cancel_called:
                self.abort_reason = reason
            # If the run has not started yet, its first item is still in the queue and ends as aborted.
            first = [self._waiting.popleft()] if self._current is None else []
            self._drop_waiting()
            self._waiting.extend(first)
            self._scope.cancel()
        return self._stopped.wait()

    def close(self) -> Awaitable[None]:
        """Abort the run and accept no more items."""
        self.closed = True
        return self.abort("user_initiated")

    # --- the waiting items --------------------------------------------------------------------------------------

    def add(self, item: QueueItem) -> None:
        """Add a prompt or a command at the end of the queue.

        Raises:
            SessionNotFoundError: the queue is closed.
        """
        self._prepare(item)
        self._waiting.append(item)
        self._commands_paused = False
        self._start_if_idle()

    def add_next(self, prompt: Prompt) -> None:
        """Add a prompt at the head of the queue.

        Raises:
            SessionNotFoundError: the queue is closed.
        """
        self._prepare(prompt)
        self._waiting.appendleft(prompt)
        self._start_if_idle()

    def steer(self, prompt: Prompt) -> None:
        """Add a prompt to the next model call of the running prompt. If none is running, add it to the queue.

        Raises:
            SessionNotFoundError: the queue is closed.
        """
        if self._current is None or self._scope.cancel_called:
            self.add(prompt)
            return
        prompt.delivery = "steering"
        self._steering.append(prompt)
        self._callbacks.on_change()

    def take_steering(self) -> list[Prompt]:
        """Remove and return the steering prompts for the next model call."""
        taken, self._steering = self._steering, []
        return taken

    def has_steering(self) -> bool:
        """Return whether steering prompts wait for the next model call."""
        return bool(self._steering)

    def waiting(self) -> tuple[list[QueueItem], list[Prompt]]:
        """Return the waiting items, and the steering prompts for the next model call."""
        return list(self._waiting), list(self._steering)

    def remove_latest(self) -> bool:
        """Drop the item that was queued last; returns ``False`` if none is waiting."""
        source = self._waiting or self._steering
        if not source:
            return False
        _end_as_aborted([source.pop()])
        self._callbacks.on_change()
        return True

    def withdraw(self, prompt: Prompt) -> Awaitable[None]:
        """Drop a waiting prompt, or abort it if it is running. Other items are not affected.

        Returns:
            An awaitable that ends when the prompt has ended.
        """
        if prompt in self._waiting:
            self._waiting.remove(prompt)
            _end_as_aborted([prompt])
            self._callbacks.on_change()
        elif self._current is prompt and not self._scope.cancel_called:
            self.abort_reason = "user_initiated"
            self._scope.cancel()
        return prompt.run.done.wait()

    def clear_waiting(self) -> None:
        """Drop all waiting items and steering prompts. The running item goes on."""
        if self._waiting or self._steering:
            self._drop_waiting()
            self._callbacks.on_change()

    def _prepare(self, item: QueueItem) -> None:
        """Check that the queue is open, and set how a prompt is delivered."""
        if self.closed:
            raise SessionNotFoundError(self._session_id)
        if isinstance(item, Prompt):
            item.delivery = "queued" if self.running else "idle"

    def _start_if_idle(self) -> None:
        if not self.running:
            self._start()
        self._callbacks.on_change()

    def _drop_waiting(self) -> None:
        waiting, self._waiting = self._waiting, deque()
        _end_as_aborted(waiting)
        self._drop_steering()

    def _drop_steering(self) -> None:
        _end_as_aborted(self.take_steering())

    # --- running ------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        self._stopped = anyio.Event()
        self._scope = anyio.CancelScope()
        self._tasks.start_soon(self._run)

    async def _run(self) -> None:
        """Run the queued items until none is left, then publish the end of the run.

        An abort ends the run; items that were added after it are run in the next one.
        """
        aborted = False
        last: QueueItem | None = None
        try:
            while self._has_runnable_item():
                item = last = self._current = self._waiting.popleft()
                with self._scope:
                    if isinstance(item, Prompt):
                        await self._callbacks.run_prompt(item)
                    else:
                        self._commands_paused = await self._callbacks.run_command(item)
                aborted = item.run.aborted = self._scope.cancelled_caught
                if self._scope.cancel_called:
                    break
                # Steering prompts that came too late for the prompt run next, by themselves.
                for late in reversed(self.take_steering()):
                    late.delivery = "queued"
                    self._waiting.appendleft(late)
                if self._has_runnable_item():
                    item.run.end()
                    self._scope = anyio.CancelScope()
        finally:
            self._current = None
            self._drop_steering()
            self._stopped.set()
            idle = self._callbacks.end_run(aborted)
            if last is not None:
                if idle is None:
                    self._unsettled.append(last.run)
                else:
                    self.settle(idle, last.run.answer)
                    last.run.idle = idle
                    last.run.end()
        if not self.running and self._has_runnable_item():
            self._start()

    def _has_runnable_item(self) -> bool:
        """Return whether the first waiting item may run now."""
        return bool(self._waiting) and not (self._commands_paused and isinstance(self._waiting[0], QueuedCommand))


def _end_as_aborted(items: Iterable[QueueItem]) -> None:
    """End the runs of items that were dropped."""
    for item in items:
        item.run.aborted = True
        item.run.end()
