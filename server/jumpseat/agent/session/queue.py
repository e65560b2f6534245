"""What waits for its turn in a session: prompts and slash commands, and what became of them.

They run one after the other, in one task; what running one means is not decided here.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import anyio
from anyio.abc import TaskGroup

from jumpseat.errors import SessionNotFoundError
from jumpseat_protocol import events
from jumpseat_protocol.sessions import HostedToolConfig, ResponseFormatConfig, ToolChoiceConfig


@dataclass(slots=True)
class Run:
    """What became of a prompt or a command; complete when ``done`` is set.

    What was slipped into a prompt shares its end.
    """

    done: anyio.Event = field(default_factory=anyio.Event)
    aborted: bool = False
    error: events.Event | None = None
    answer: events.Event | None = None
    idle: events.Event | None = None
    steered_by: list[Run] = field(default_factory=lambda: list[Run]())

    def end(self) -> None:
        """Tell all who wait for it; nothing changes from here on."""
        for one in self.steered_by:
            one.aborted, one.error, one.answer, one.idle = self.aborted, self.error, self.answer, self.idle
            one.done.set()
        self.done.set()


@dataclass(slots=True)
class Prompt:
    """A prompt on its way through the queue. ``headers`` go to the provider with this prompt's calls only.

    ``adapter_settings`` win, one by one, over those of the session. ``called`` tells that the model has been called
    for it, ``repaired`` that it was told once what was wrong with the form of its answer.
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
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    interaction_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    run: Run = field(default_factory=lambda: Run())


@dataclass(slots=True)
class QueuedCommand:
    """A slash command on its way through the queue, with its slash; ``display_text`` is shown for it."""

    text: str
    display_text: str
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    run: Run = field(default_factory=lambda: Run())


QueueItem: TypeAlias = Prompt | QueuedCommand


@dataclass(frozen=True, slots=True)
class Callbacks:
    """What a queue calls: for a prompt, for a command (which tells whether the commands behind it are to wait for
    something new), when what waits has changed, and at the end of a run, for the event that says so. The last is
    told whether the run was aborted."""

    prompt: Callable[[Prompt], Awaitable[None]]
    command: Callable[[QueuedCommand], Awaitable[bool]]
    changed: Callable[[], object]
    ended: Callable[[bool], events.Event]


class Queue:
    """The prompts and commands of one session. A *run* goes on until nothing waits any more."""

    def __init__(self, session_id: str, tasks: TaskGroup, callbacks: Callbacks) -> None:
        self._session_id = session_id
        self._tasks = tasks
        self._call = callbacks
        self.closed = False
        """Whether all has ended, for good."""
        self.abort_reason = "user_initiated"
        """Why what runs was stopped last."""
        self._waiting: deque[QueueItem] = deque()
        # Set where commands are to wait until something new is asked for.
        self._commands_wait = False
        self._steering: list[Prompt] = []
        # The scope of what runs; made before its task starts, so that an early abort is not lost.
        self._scope = anyio.CancelScope()
        self._current: QueueItem | None = None
        self._stopped = anyio.Event()
        self._stopped.set()

    # --- what runs ----------------------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        return not self._stopped.is_set()

    @property
    def prompting(self) -> bool:
        """Whether a prompt runs, or is about to; a command may run where none does."""
        return self.running and not isinstance(self._current, QueuedCommand)

    @property
    def prompt(self) -> Prompt | None:
        """The prompt that runs."""
        return self._current if isinstance(self._current, Prompt) else None

    def abort(self, reason: str) -> Awaitable[None]:
        """Stop what runs and forget what waits, at once: a prompt sent after this call is not touched.

        Returns:
            What to await for all to be quiet. When idle, nothing is stopped.
        """
        if self.running:
            if not self._scope.cancel_called:
                self.abort_reason = reason
            # A run that has not begun yet has its first prompt still in the queue: it ends as any aborted one.
            first = [self._waiting.popleft()] if self._current is None else []
            self._drop_waiting()
            self._waiting.extend(first)
            self._scope.cancel()
        return self._stopped.wait()

    def close(self) -> Awaitable[None]:
        """Abort, for good."""
        self.closed = True
        return self.abort("user_initiated")

    # --- what waits ---------------------------------------------------------------------------------------------

    def add(self, item: QueueItem) -> None:
        """Have a prompt or a command run when all that was added before it is done.

        Raises:
            SessionNotFoundError: the queue is closed.
        """
        self._admit(item)
        self._waiting.append(item)
        self._commands_wait = False
        self._go_on()

    def add_next(self, prompt: Prompt) -> None:
        """Have a prompt run before all that waits.

        Raises:
            SessionNotFoundError: the queue is closed.
        """
        self._admit(prompt)
        self._waiting.appendleft(prompt)
        self._go_on()

    def steer(self, prompt: Prompt) -> None:
        """Have a prompt go with the next model call of the one that runs; where none does, it is added.

        Raises:
            SessionNotFoundError: the queue is closed.
        """
        if self._current is None or self._scope.cancel_called:
            self.add(prompt)
            return
        prompt.delivery = "steering"
        self._steering.append(prompt)
        self._call.changed()

    def take_steering(self) -> list[Prompt]:
        """The prompts to slip in before the next model call."""
        taken, self._steering = self._steering, []
        return taken

    def has_steering(self) -> bool:
        return bool(self._steering)

    def waiting(self) -> tuple[list[QueueItem], list[Prompt]]:
        """What waits for its turn, and the prompts that will be slipped into the one that runs."""
        return list(self._waiting), list(self._steering)

    def remove_latest(self) -> bool:
        """Forget the prompt or command that was queued last; ``False`` where none waits."""
        source = self._waiting or self._steering
        if not source:
            return False
        _forget([source.pop()])
        self._call.changed()
        return True

    def withdraw(self, prompt: Prompt) -> Awaitable[None]:
        """Forget a prompt that waits, or stop it where it runs; what else waits is not touched.

        Returns:
            What to await for it to have ended.
        """
        if prompt in self._waiting:
            self._waiting.remove(prompt)
            _forget([prompt])
            self._call.changed()
        elif self._current is prompt and not self._scope.cancel_called:
            self.abort_reason = "user_initiated"
            self._scope.cancel()
        return prompt.run.done.wait()

    def clear_waiting(self) -> None:
        """Forget all that waits; the one that runs goes on."""
        if self._waiting or self._steering:
            self._drop_waiting()
            self._call.changed()

    def _admit(self, item: QueueItem) -> None:
        if self.closed:
            raise SessionNotFoundError(self._session_id)
        if isinstance(item, Prompt):
            item.delivery = "queued" if self.running else "idle"

    def _go_on(self) -> None:
        if not self.running:
            self._start()
        self._call.changed()

    def _drop_waiting(self) -> None:
        waiting, self._waiting = self._waiting, deque()
        _forget(waiting)
        self._drop_steering()

    def _drop_steering(self) -> None:
        _forget(self.take_steering())

    # --- running it ---------------------------------------------------------------------------------------------

    def _start(self) -> None:
        self._stopped = anyio.Event()
        self._scope = anyio.CancelScope()
        self._tasks.start_soon(self._run)

    async def _run(self) -> None:
        """Run what is queued until nothing is left, then say so. Nothing that goes wrong in one stops the next.

        An abort ends the run; prompts that were sent after it are run in another one.
        """
        aborted = False
        last: QueueItem | None = None
        try:
            while self._due():
                item = last = self._current = self._waiting.popleft()
                with self._scope:
                    if isinstance(item, Prompt):
                        await self._call.prompt(item)
                    else:
                        self._commands_wait = await self._call.command(item)
                aborted = item.run.aborted = self._scope.cancelled_caught
                if self._scope.cancel_called:
                    break
                # What was to be slipped into a run that has failed gets a run of its own.
                for late in reversed(self.take_steering()):
                    late.delivery = "queued"
                    self._waiting.appendleft(late)
                if self._due():
                    item.run.end()
                    self._scope = anyio.CancelScope()
        finally:
            self._current = None
            self._drop_steering()
            self._stopped.set()
            idle = self._call.ended(aborted)
            if last is not None:
                last.run.idle = idle
                last.run.end()
        if self._due():
            self._start()

    def _due(self) -> bool:
        """Whether something is to be run now."""
        return bool(self._waiting) and not (self._commands_wait and isinstance(self._waiting[0], QueuedCommand))


def _forget(items: Iterable[QueueItem]) -> None:
    """End the runs of what will not be run."""
    for item in items:
        item.run.aborted = True
        item.run.end()
