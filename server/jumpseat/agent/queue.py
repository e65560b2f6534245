"""What waits for its turn in a session: prompts and slash commands, and what became of them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import anyio

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
    slipped_in: list[Run] = field(default_factory=lambda: list[Run]())

    def end(self) -> None:
        """Tell all who wait for it; nothing changes from here on."""
        for one in self.slipped_in:
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


def forget(items: Iterable[QueueItem]) -> None:
    """End the runs of what will not be run."""
    for item in items:
        item.run.aborted = True
        item.run.end()
