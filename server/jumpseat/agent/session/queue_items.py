"""The items of a session's queue, prompts and slash commands, and their outcomes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from typing import Any, TypeAlias

import anyio
from msgspec import Struct, field
from msgspec.structs import replace

from jumpseat.agent.blocks import Message, ToolUseBlock
from jumpseat.agent.clock import new_id
from jumpseat.agent.observation import TraceContext
from jumpseat_protocol import events
from jumpseat_protocol.sessions import HostedToolConfig, ResponseFormatConfig, ToolChoiceConfig
from jumpseat_protocol.structs import Discreet


class Run(Struct):
    """The outcome of a prompt or a command; complete when ``done`` is set.

    ``response`` takes the place of the answer's text for whoever has asked for it. ``steered_by`` are the runs of
    the prompts that steered this one; they end with the same outcome.
    """

    done: anyio.Event = field(default_factory=anyio.Event)
    aborted: bool = False
    error: events.Event | None = None
    answer: events.Event | None = None
    response: str | None = None
    idle: events.Event | None = None
    steered_by: list[Run] = field(default_factory=lambda: list[Run]())

    def end(self) -> None:
        """Copy the outcome to the steering runs, and set ``done`` on all of them."""
        for run in self.steered_by:
            run.aborted, run.error, run.answer, run.idle = self.aborted, self.error, self.answer, self.idle
            run.done.set()
        self.done.set()


class Progress(Struct):
    """The calls that the model has made in a run, and the compactions since the last new one."""

    calls: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    in_vain: int = 0
    compactions: int | None = None
    messages: Sequence[Message] = ()
    """The compactions of the session at the last request of the run, and the messages of that."""

    def note(self, calls: Iterable[ToolUseBlock]) -> None:
        """Note the calls of an answer."""
        made = {(call.name, call.arguments_json) for call in calls}
        if made - self.calls:
            self.in_vain = 0
            self.calls |= made


class Prompt(Discreet, Struct):
    """A queued prompt. ``headers`` are sent to the provider with this prompt's model calls only.

    ``adapter_settings`` override those of the session one by one. ``called`` is set once the model has answered a
    call, ``repaired`` once the model was asked to correct the format of its answer, ``asked_again`` once it was
    asked again after an empty answer. ``trace`` is the client's. ``display_text`` is shown to users in place of the
    text, ``source`` names where a prompt comes from that is not the user's. With ``continues``, the run continues
    with the open calls of an interrupted one, and has no message. ``notification`` takes the place of the user's
    message: the model gets its content, unchanged. The prompts ``before`` were sent together with this one; they
    end with the same outcome, and the model gets them without the date and the reminder. ``turn`` is the latest
    turn of its run, which has begun at ``turn_begun_s``. ``message_ids`` are the ids of its messages: its own, and
    those of the prompts that steered it. Without the ``required_tool``, its run fails. If it is not ``billable``,
    it counts as the agent's own request. Without ``shows_mode``, its message has no ``agent_mode``.
    """

    hidden = ("headers",)
    text: str
    before: list[Prompt] = field(default_factory=lambda: list[Prompt]())
    attachments: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    agent_mode: events.AgentMode | None = None
    shows_mode: bool = True
    headers: dict[str, str] = field(default_factory=dict[str, str])
    tool_choice: ToolChoiceConfig | None = None
    hosted_tools: list[str | HostedToolConfig] | None = None
    response_format: ResponseFormatConfig | None = None
    repaired: bool = False
    asked_again: bool = False
    called: bool = False
    adapter_settings: dict[str, Any] = field(default_factory=dict[str, Any])
    delivery: events.Delivery = "idle"
    trace: TraceContext | None = None
    display_text: str | None = None
    source: str | None = None
    required_tool: str | None = None
    billable: bool = True
    notification: events.SystemNotification | None = None
    continues: bool = False
    order: int = 0
    turn: int = 0
    turn_begun_s: float | None = None
    id: str = field(default_factory=new_id)
    interaction_id: str = field(default_factory=new_id)
    run: Run = field(default_factory=lambda: Run())
    progress: Progress = field(default_factory=Progress)
    message_ids: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.message_ids = [self.id]

    @property
    def shown(self) -> str:
        """Return the text that is shown to users."""
        return self.text if self.display_text is None else self.display_text

    def copy(self) -> Prompt:
        """Return a prompt with the same content, and with an identity and an outcome of its own."""
        fresh = Prompt(self.text, before=[prompt.copy() for prompt in self.before])
        return replace(
            self,
            id=fresh.id,
            interaction_id=fresh.interaction_id,
            run=fresh.run,
            before=fresh.before,
            progress=fresh.progress,
        )


class QueuedCommand(Struct):
    """A queued slash command. ``text`` begins with the slash; ``display_text`` is shown to users."""

    text: str
    display_text: str
    order: int = 0
    id: str = field(default_factory=new_id)
    run: Run = field(default_factory=lambda: Run())

    def copy(self) -> QueuedCommand:
        """Return a command with the same text, and with an identity and an outcome of its own."""
        return QueuedCommand(self.text, self.display_text)


QueueItem: TypeAlias = Prompt | QueuedCommand


def end_as_aborted(items: Iterable[QueueItem]) -> None:
    """End the runs of items that were dropped."""
    for item in items:
        item.run.aborted = True
        item.run.end()


class Stopped(Awaitable[None]):
    """An awaitable that calls the functions ``waits``, one after the other.

    Unlike a coroutine, it can be dropped: an unfinished wait is cancelled together with its request, and Python
    warns about coroutines that were never awaited.
    """

    def __init__(self, *waits: Callable[[], Awaitable[None]]) -> None:
        self._waits = waits

    def __await__(self) -> Generator[Any, Any, None]:
        return self.wait().__await__()

    async def wait(self) -> None:
        """Wait until all work has ended."""
        for wait in self._waits:
            await wait()
