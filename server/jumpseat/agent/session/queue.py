"""The queue of a session: which prompts and slash commands wait, and which of them runs.

Items run one after the other, in one task. The queue calls :class:`Callbacks` to run them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Generator
from contextlib import contextmanager
from typing import Protocol

import anyio
from anyio.abc import TaskGroup

from jumpseat.agent.session.queue_items import Prompt, QueuedCommand, QueueItem, Run, Stopped, end_as_aborted
from jumpseat.errors import SessionNotFoundError, UnknownItemError
from jumpseat_protocol import events


class Callbacks(Protocol):
    """The functions that a queue calls."""

    def run_prompt(self, prompt: Prompt) -> Awaitable[None]:
        """Run a prompt."""
        ...

    def run_command(self, command: QueuedCommand) -> Awaitable[bool]:
        """Run a command; return whether the commands behind it have to wait until something else is queued."""
        ...

    def on_change(self) -> None:
        """Announce that the waiting items have changed."""
        ...

    def store(self) -> Awaitable[None]:
        """Wait, for a limited time, until the events of a run are stored."""
        ...

    def end_run(self, aborted: bool) -> events.Event | None:
        """Publish the end of a run and return that event.

        The result is ``None`` if :meth:`Queue.settle` follows, or another run.
        """
        ...


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
        # Not a deque, whose first block alone takes more memory than most other parts of an idle session.
        self._waiting: list[QueueItem] = []
        # Commands at the head of the queue wait until another item is added.
        self._commands_paused = False
        # No item begins while the queue is paused, except the urgent one.
        self._paused = False
        self._urgent: QueueItem | None = None
        # The number of items so far: each has its place in the order in which they were added.
        self._added = 0
        self._steering: list[Prompt] = []
        # Whether no item may start.
        self.is_held = False
        # The scope of the running item; created before its task starts, so that an early abort is not lost.
        self._scope: anyio.CancelScope | None = None
        self._current: QueueItem | None = None
        # Set at the end of the run; `None` while there is none.
        self._stopped: anyio.Event | None = None
        # The outcomes of runs whose end is not published yet.
        self._unsettled: list[Run] = []

    # --- the running item ---------------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Return whether a run is in progress or about to start."""
        return self._stopped is not None

    @property
    def prompting(self) -> bool:
        """Return whether a prompt runs or is about to; false while a command runs."""
        return self.running and not isinstance(self._current, QueuedCommand)

    @property
    def prompt(self) -> Prompt | None:
        """Return the running prompt, if any."""
        return self._current if isinstance(self._current, Prompt) else None

    @property
    def can_interrupt(self) -> bool:
        """Return whether an item runs, or is about to, that was not aborted before."""
        if not self.running or self._cancelled:
            return False
        return self._current is not None or self._has_runnable_item()

    async def wait(self) -> None:
        """Wait until no run is in progress."""
        if self._stopped is not None:
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

    def abort(self, reason: str) -> Stopped:
        """Abort the run and drop the waiting items. Items added after this call are not affected.

        Returns:
            An awaitable that ends when the run has ended; at once if none is running.
        """
        if self._scope is None or self._stopped is None:
            self.clear_waiting()
            return Stopped()
        if not self._scope.cancel_called:
            self.abort_reason = reason
        # If the run has not started yet, its first item is still in the queue and ends as aborted.
        first = [self._waiting.pop(0)] if self._current is None and self._has_runnable_item() else []
        self._drop_waiting()
        self._waiting.extend(first)
        self._scope.cancel()
        return Stopped(self._stopped.wait)

    def interrupt(self, reason: str, *, flush: bool) -> Stopped | None:
        """Abort the running item; the waiting items run next if ``flush``, and are dropped otherwise.

        Returns:
            An awaitable that ends when the item has ended; ``None`` if none is running.
        """
        if self._scope is None or self._stopped is None or not self.can_interrupt:
            return None
        current = self._current or self._waiting.pop(0)
        if flush:
            self._flush_steering()
        else:
            self._drop_waiting()
            self._callbacks.on_change()
        if self._current is None:
            self._waiting.insert(0, current)
        self.abort_reason = reason
        self._scope.cancel()
        return Stopped(self._stopped.wait)

    def close(self) -> Stopped:
        """Abort the run and accept no more items."""
        self.closed = True
        return self.abort("user_initiated")

    @contextmanager
    def held(self) -> Generator[None]:
        """Let no item start inside of the block; those that are added meanwhile run afterwards."""
        self.is_held = True
        try:
            yield
        finally:
            self.is_held = False
            self.start_waiting()

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
        self.insert(0, prompt)

    def insert(self, position: int, item: QueueItem) -> None:
        """Add an item at a position: zero or less is the head of the queue, beyond its end is the end.

        Raises:
            SessionNotFoundError: the queue is closed.
        """
        self._prepare(item)
        self._waiting.insert(max(position, 0), item)
        self._start_if_idle()

    def steer(self, prompt: Prompt) -> None:
        """Add a prompt to the next model call of the running prompt. If none is running, add it to the queue.

        Raises:
            SessionNotFoundError: the queue is closed.
        """
        if self._current is None or self._cancelled:
            self.add(prompt)
            return
        self._number(prompt)
        prompt.delivery = "steering"
        self._steering.append(prompt)
        self._callbacks.on_change()

    def steer_first(self, prompt: Prompt) -> None:
        """Add a prompt to the next model call of the running prompt, before all others."""
        self._number(prompt)
        prompt.delivery = "steering"
        self._steering.insert(0, prompt)
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
        """Drop the item that was added last, wherever it is now; returns ``False`` if none is waiting."""
        source = self._waiting or self._steering
        if not source:
            return False
        self._take_out(max(source, key=lambda item: item.order))
        return True

    def find(self, item_id: str) -> QueueItem:
        """Return a waiting item; steering prompts are not among them.

        Raises:
            UnknownItemError: no waiting item has this id.
        """
        for item in self._waiting:
            if item.id == item_id:
                return item
        raise UnknownItemError("queue item", item_id)

    def changed(self) -> None:
        """Announce that a waiting item was changed."""
        self._callbacks.on_change()

    def remove(self, item: QueueItem) -> None:
        """Drop a waiting item."""
        self._take_out(item)

    def move(self, item: QueueItem, position: int) -> bool:
        """Move a waiting item to a position, like :meth:`insert`; returns whether its position changed."""
        before = list(self._waiting)
        self._waiting.remove(item)
        self._waiting.insert(max(position, 0), item)
        changed = list(self._waiting) != before
        if changed:
            self._start_if_idle()
        return changed

    def duplicate(self, item: QueueItem) -> QueueItem:
        """Add a copy of a waiting item behind it."""
        copy = item.copy()
        self.insert(self._waiting.index(item) + 1, copy)
        return copy

    def send_now(self, item: QueueItem) -> bool:
        """Steer the running prompt with a waiting one; returns ``False`` if that is not possible.

        An item that cannot steer is the next to run, even if the queue is paused.
        """
        self._waiting.remove(item)
        steers = isinstance(item, Prompt) and self.prompt is not None and not self._cancelled
        if isinstance(item, Prompt) and steers:
            item.delivery = "steering"
            self._steering.append(item)
        else:
            self._waiting.insert(0, item)
            self._urgent = item
        self._start_if_idle()
        return steers

    @property
    def paused(self) -> bool:
        """True while the queue is paused; the running item is not affected."""
        return self._paused

    @paused.setter
    def paused(self, paused: bool) -> None:
        self._paused = paused
        self.start_waiting()

    def start_waiting(self) -> None:
        """Start a run if none is in progress and an item may run."""
        if not self.running and self._has_runnable_item():
            self._start()

    def withdraw(self, prompt: Prompt) -> Stopped:
        """Drop a waiting prompt, or abort it if it is running. Other items are not affected.

        Returns:
            An awaitable that ends when the prompt has ended.
        """
        if prompt in self._waiting or prompt in self._steering:
            self._take_out(prompt)
        elif self._current is prompt and self._scope is not None and not self._scope.cancel_called:
            self.abort_reason = "user_initiated"
            self._scope.cancel()
        return Stopped(prompt.run.done.wait)

    def clear_waiting(self) -> None:
        """Drop all waiting items and steering prompts. The running item continues."""
        if self._waiting or self._steering:
            self._drop_waiting()
            self._callbacks.on_change()

    def _prepare(self, item: QueueItem) -> None:
        """Check that the queue is open, and set how a prompt is delivered."""
        if self.closed:
            raise SessionNotFoundError(self._session_id)
        self._number(item)
        if isinstance(item, Prompt):
            item.delivery = "queued" if self.running or self._paused else "idle"

    def _number(self, item: QueueItem) -> None:
        self._added += 1
        item.order = self._added

    def _start_if_idle(self) -> None:
        self.start_waiting()
        self._callbacks.on_change()

    def _take_out(self, item: QueueItem) -> None:
        self._waiting = [other for other in self._waiting if other is not item]
        self._steering = [other for other in self._steering if other is not item]
        end_as_aborted([item])
        self._callbacks.on_change()

    def _drop_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        end_as_aborted(waiting)
        self._drop_steering()

    def _flush_steering(self) -> None:
        """Move the steering prompts to the head of the queue."""
        for late in reversed(self.take_steering()):
            late.delivery = "queued"
            self._waiting.insert(0, late)

    def _drop_steering(self) -> None:
        end_as_aborted(self.take_steering())

    # --- running ------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        stopped = self._stopped = anyio.Event()
        self._scope = anyio.CancelScope()
        self._tasks.start_soon(self._run, self._scope, stopped)

    async def _run(self, scope: anyio.CancelScope, stopped: anyio.Event) -> None:
        """Run the queued items until none is left, then publish the end of the run.

        An abort ends the run; items that were added after it are run in the next one.
        """
        aborted = False
        last: QueueItem | None = None
        try:
            while self._has_runnable_item():
                item = last = self._current = self._waiting.pop(0)
                self._urgent = None
                with scope:
                    if isinstance(item, Prompt):
                        await self._callbacks.run_prompt(item)
                    else:
                        self._commands_paused = await self._callbacks.run_command(item)
                aborted = item.run.aborted = scope.cancelled_caught
                if scope.cancel_called:
                    break
                # Steering prompts that came too late for the prompt run next, by themselves.
                self._flush_steering()
                if self._has_runnable_item():
                    item.run.end()
                    scope = self._scope = anyio.CancelScope()
        finally:
            self._current = None
            self._drop_steering()
            # Shielded, because the end of a run is published even if the server is ending.
            with anyio.CancelScope(shield=True):
                await self._callbacks.store()
            self._scope = self._stopped = None
            stopped.set()
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

    @property
    def _cancelled(self) -> bool:
        return self._scope is not None and self._scope.cancel_called

    def _has_runnable_item(self) -> bool:
        """Return whether the first waiting item may run now."""
        if not self._waiting or self.is_held or (self._paused and self._waiting[0] is not self._urgent):
            return False
        return not (self._commands_paused and isinstance(self._waiting[0], QueuedCommand))
