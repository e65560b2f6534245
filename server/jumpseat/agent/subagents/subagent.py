"""The state of one sub-agent, as tools and clients see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

import anyio
from msgspec import Struct, field

from jumpseat.agent.clock import utc_now
from jumpseat.agent.session.metrics import Metrics
from jumpseat.agent.session.queue_items import Prompt, Run
from jumpseat.agent.session.sub_agents import SubAgentIdentity
from jumpseat.agent.subagents.session import SubAgentSession
from jumpseat_protocol import events

AgentStatus: TypeAlias = Literal["running", "idle", "failed", "cancelled"]
"""``idle`` agents have answered, and can be sent another message."""

LoggedPayload: TypeAlias = tuple[str | None, events.EventPayload | events.UnknownPayload]
"""An event read from the log: its id, and its payload."""

AgentMode: TypeAlias = Literal["sync", "background"]
"""``sync`` if the call that started an agent waits for its answer."""

INTERRUPTED: Final = "The agent was interrupted at its work."
"""The error of an agent that was at work when an earlier process ended."""

ACTIVITY_KEPT: Final = 20
"""The number of an agent's latest tool calls that its progress shows."""


class Exchange(Struct):
    """A message to a sub-agent and its answer, which is ``None`` while it works, or if it has given none."""

    message: str
    answer: str | None = None
    run: Run | None = None


class SubAgent(Struct):
    """A sub-agent.

    ``session`` is ``None`` for an agent of an earlier process, and for one that is no longer kept. ``parent_id`` is
    the sub-agent that started it; ``None`` for the main agent. Timestamps are in ISO 8601, ``_s`` are seconds.
    ``unread`` is true while the agent that started it has not been told the outcome. ``stop_reason`` says why this
    server ends its run.
    """

    id: str
    type: str
    name: str
    description: str
    call_id: str
    parent_id: str | None
    started_at: str
    mode: AgentMode = "sync"
    status: AgentStatus = "running"
    session: SubAgentSession | None = None
    exchanges: list[Exchange] = field(default_factory=list[Exchange])
    model: str | None = None
    requested_model: str | None = None
    requested_effort: str | None = None
    error: str | None = None
    stop_reason: str | None = None
    unread: bool = False
    ended: bool = False
    """True if the end of the agent's first run is in the log."""
    metrics: Metrics = field(default_factory=Metrics)
    tool_calls: int = 0
    open_calls: list[str] = field(default_factory=list[str])
    """The calls of the agent's model that have no result yet."""
    last_event_id: str | None = None
    """The last event of the agent in the log."""
    past: list[LoggedPayload] | None = None
    """The events of an agent of an earlier process, from which :mod:`.revival` makes a session; if kept."""
    tokens: int = 0
    activity: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    active_since: str | None = None
    idle_since: str | None = None
    ended_at: str | None = None
    begun_s: float = 0.0
    active_s: float = 0.0
    done: anyio.Event = field(default_factory=anyio.Event)
    moved: anyio.Event = field(default_factory=anyio.Event)
    """Set when the agent is moved to the background."""

    def identity(self, depth: int, cause: Prompt | None) -> SubAgentIdentity:
        """Return the identity of the agent in its session."""
        return SubAgentIdentity(
            id=self.id,
            type=self.type,
            name=self.name,
            description=self.description,
            call_id=self.call_id,
            parent_id=self.parent_id,
            depth=depth,
            cause=cause,
        )

    @property
    def answer(self) -> str:
        """Return the last answer; empty if there is none."""
        return next((one.answer for one in reversed(self.exchanges) if one.answer), "")

    @property
    def turns(self) -> int:
        """Return the number of answered messages."""
        return sum(one.answer is not None for one in self.exchanges)

    @property
    def waited_for(self) -> bool:
        """Return whether a call waits for the answer."""
        return self.mode == "sync" and not self.moved.is_set()

    @property
    def was_interrupted(self) -> bool:
        """Return whether an earlier process has ended in the middle of the agent's work."""
        return self.status == "failed" and self.error == INTERRUPTED

    def begin(self, now_s: float) -> None:
        """Note that the agent begins to work."""
        self.status, self.error, self.stop_reason = "running", None, None
        self.active_since, self.idle_since, self.ended_at = utc_now(), None, None
        self.started_at = self.started_at or self.active_since
        self.begun_s, self.done = now_s, anyio.Event()

    def count(self, payload: events.EventPayload) -> None:
        """Count what an event of the agent says about its work."""
        match payload:
            case events.AssistantUsage():
                self.tokens += payload.input_tokens + payload.output_tokens
            case events.AssistantMessage():
                now = utc_now()
                self.tool_calls += len(payload.tool_requests)
                self.open_calls += [call.tool_call_id for call in payload.tool_requests]
                self.activity += [(call.intention_summary or call.name, now) for call in payload.tool_requests]
                del self.activity[:-ACTIVITY_KEPT]
            case events.ToolExecutionComplete() if payload.tool_call_id in self.open_calls:
                self.open_calls.remove(payload.tool_call_id)
            case _:
                pass


def find_named(agents: Mapping[str, SubAgent], name: str) -> SubAgent | None:
    """Return an agent by its id, or by its name if only one has that name."""
    if (agent := agents.get(name)) is not None:
        return agent
    named = [agent for agent in agents.values() if agent.name == name]
    return named[0] if len(named) == 1 else None
