"""A session's record of its sub-agents; :mod:`jumpseat.agent.subagents` runs them."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.session.queue_items import Prompt, Stopped
from jumpseat_protocol import events


class SubAgentIdentity(Struct, frozen=True):
    """A sub-agent, within its session.

    ``type`` is its kind, ``name`` what users see. ``call_id`` is the tool call that started it, ``parent_id`` the
    sub-agent that made that call; ``None`` if the main agent did. ``depth`` is one for those of the main agent.
    ``cause`` is the prompt of the user that the main agent worked on, if any.
    """

    id: str
    type: str
    name: str
    description: str
    call_id: str
    parent_id: str | None
    depth: int
    cause: Prompt | None = None

    @property
    def members(self) -> JsonObject:
        """Return how hooks identify the agent."""
        parent = {} if self.parent_id is None else {"parentAgentId": self.parent_id}
        return {"agentId": self.id, "agentType": self.type, **parent}


class AgentLimits(Struct, frozen=True):
    """Limits on what one session does by itself.

    ``depth`` is that of agents that start agents, ``running`` the number of those that work at the same time. An
    agent may work for ``timeout_s`` seconds on a task, and use ``tokens`` of input and output in all; ``None`` is
    no limit. ``kept`` is the number of finished agents that can be sent another message, ``remembered`` the number
    of agents from which on those that have ended are read from the log. ``session.idle`` waits for a command in the
    background for ``command_wait_s`` seconds. A prompt in autopilot mode is continued at most ``continues`` times.
    """

    depth: int = 4
    running: int = 16
    timeout_s: float = 3600.0
    tokens: int | None = None
    kept: int = 64
    remembered: int = 128
    command_wait_s: float = 600.0
    continues: int = 50


class RunningAgents(Protocol):
    """The sub-agents of a session and its commands in the background, as far as the session has to know."""

    @property
    def has_any(self) -> bool:
        """Return whether there is an agent that can be asked or read."""
        ...

    @property
    def working(self) -> bool:
        """Return whether an agent works, or a command for which the session waits."""
        ...

    def go_on(self) -> bool:
        """Tell the main agent about an agent that has ended, in a separate run.

        Returns:
            Whether the session has more to do: such a run, or agents that work.
        """
        ...

    def take_untold(self) -> list[events.SystemNotification]:
        """Return what the main agent has to be told before its next prompt."""
        ...

    def abort(self, stopped: Stopped) -> Stopped:
        """Abort all agents; returns an awaitable that ends with ``stopped`` and all of them."""
        ...

    def forget_commands(self) -> None:
        """Let commands in the background run on, without waiting for them or telling the model about their ends."""
        ...

    async def close(self, grace_s: float | None) -> None:
        """End all agents and what they have running; commands have ``grace_s`` seconds to end by themselves."""
        ...
