"""The sub-agents that a session knows: found by id, name and relation, read from the log, forgotten.

:mod:`jumpseat.agent.subagents.subagents` runs them.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

import anyio
import anyio.to_thread

from jumpseat.agent.clock import utc_now
from jumpseat.agent.session.history import LoggedEvent
from jumpseat.agent.session.metrics import Metrics
from jumpseat.agent.session.session import Session
from jumpseat.agent.session.sub_agents import AgentLimits, SubAgentIdentity
from jumpseat.agent.subagents.history import AgentHistory, forget_old
from jumpseat.agent.subagents.outcome import interruption_events
from jumpseat.agent.subagents.revival import identity_of
from jumpseat.agent.subagents.subagent import INTERRUPTED, SubAgent, find_named
from jumpseat.errors import InvalidRequestError

AgentScope: TypeAlias = Literal["siblings", "children", "all"]
"""Agents with the same parent, those that an agent has started, or all others."""


class Roster:
    """The sub-agents of the session ``root``, which is that of the main agent, by id."""

    def __init__(self, root: Session, limits: AgentLimits) -> None:
        self.limits = limits
        self._root = root
        self._agents: dict[str, SubAgent] = {}
        self.forgotten = Metrics()
        """The usage of the agents that were forgotten, in this process."""

    def __iter__(self) -> Iterator[SubAgent]:
        return iter(list(self._agents.values()))

    @property
    def has_any(self) -> bool:
        return bool(self._agents)

    def find(self, agent_id: str) -> SubAgent | None:
        """Return an agent by its id, or by its name if only one has that name."""
        return find_named(self._agents, agent_id)

    async def look_up(self, agent_id: str) -> SubAgent | None:
        """Return an agent like :meth:`find`, or read one that was forgotten from the log; such an agent has ended.

        Raises:
            StoreError: the log cannot be read.
        """
        if (found := self.find(agent_id)) is not None or not _is_uuid(agent_id):
            return found

        def read() -> SubAgent | None:
            history = AgentHistory({}, kept=0, remembered=1)
            for event in self._root.services.read_agent(self._root, agent_id):
                history.apply(event)
            return history.agents.get(agent_id)

        return await anyio.to_thread.run_sync(read)

    def children(self, parent_id: str | None) -> list[SubAgent]:
        """Return the agents that an agent has started; ``None`` is the main agent."""
        return [agent for agent in self if agent.parent_id == parent_id]

    def of_scope(self, asker: SubAgentIdentity | None, scope: AgentScope) -> list[SubAgent]:
        """Return the agents that stand in a relation to an agent; ``None`` is the main agent."""
        own_id = None if asker is None else asker.id
        match scope:
            case "children":
                return self.children(own_id)
            case "siblings":
                siblings = [] if asker is None else self.children(asker.parent_id)
                return [agent for agent in siblings if agent.id != own_id]
            case "all":
                return [agent for agent in self if agent.id != own_id]

    @staticmethod
    def elapsed_s(agent: SubAgent) -> float:
        """Return the seconds that an agent has worked."""
        return agent.active_s + (anyio.current_time() - agent.begun_s if agent.status == "running" else 0.0)

    def promotable(self) -> SubAgent | None:
        """Return the agent that the main agent waits for, if any."""
        waiting = (agent for agent in self.children(None) if agent.waited_for and agent.status == "running")
        return next(waiting, None)

    def _forget_ended(self) -> None:
        for agent in forget_old(self._agents, self.limits.remembered):
            self.forgotten.add(agent.metrics)

    def _check_running(self) -> None:
        of_user = self._root.settings.sub_agent_settings
        running = lower(self.limits.running, None if of_user is None else of_user.max_concurrency)
        if sum(agent.status == "running" for agent in self._agents.values()) >= running:
            raise InvalidRequestError(f"No agent was started: {running} agents work already. Wait for one of them.")

    # --- agents of an earlier process -------------------------------------------------------------------------

    def history(self) -> AgentHistory:
        """Return the object that rebuilds the agents of earlier processes from the events of the log."""
        return AgentHistory(self._agents, self.limits.kept, self.limits.remembered)

    def end_interrupted(self) -> None:
        """Publish the end of the agents that are at work in the log only, innermost first.

        An earlier process has ended meanwhile, or a rewind has removed their ends.

        Raises:
            StoreError: the log cannot be written.
        """
        for agent in reversed(list(self)):
            if agent.status == "running":
                agent.status, agent.error, agent.ended_at = "failed", INTERRUPTED, utc_now()
                agent.unread = agent.mode == "background"
                identity = identity_of(self._agents, agent, self._root)
                for payload in list(interruption_events(agent)):
                    event = self._root.emit_for(identity, payload)
                    agent.count(payload)
                    if agent.past is not None:
                        agent.past.append((event.id, payload))
                    agent.last_event_id = event.id
                agent.ended = True

    def rewind(self, history: Iterable[LoggedEvent]) -> None:
        """Go back to the agents of a shortened log; no agent may be at work.

        An agent that has lost events continues from those that are left.
        """
        left = AgentHistory({}, self.limits.kept, self.limits.remembered)
        for event in history:
            left.apply(event)
        former, self._agents = self._agents, left.agents
        for agent in former.values():
            now = left.agents.get(agent.id)
            if now is not None and now.last_event_id == agent.last_event_id:
                agent.unread = now.unread
                self._agents[agent.id] = agent
            elif agent.session is not None:
                self._root.services.tasks.start_soon(agent.session.close)


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


def lower(limit: int, wanted: int | None) -> int:
    """Return a limit, or what the user wants if that is lower."""
    return limit if wanted is None else min(limit, wanted)
