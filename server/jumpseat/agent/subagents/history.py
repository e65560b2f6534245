"""Rebuild the sub-agents of a session from the events of its log."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from jumpseat.agent.session.history import LoggedEvent
from jumpseat.agent.subagents import texts
from jumpseat.agent.subagents.subagent import Exchange, SubAgent, find_named
from jumpseat_protocol import events


def forget_old(agents: dict[str, SubAgent], most: int) -> list[SubAgent]:
    """Remove the oldest agents beyond the number ``most``, and return them.

    Agents stay while they can work, while their outcome has to be reported, and while they are the parents of
    agents that stay: more than ``most`` can be left.
    """
    surplus = len(agents) - most
    if surplus <= 0:
        return []
    parents = {agent.parent_id for agent in agents.values()}
    over = (agent for agent in agents.values() if agent.id not in parents and _is_over(agents, agent))
    old = list(islice(over, surplus))
    for agent in old:
        del agents[agent.id]
    return old


def _is_over(agents: Mapping[str, SubAgent], agent: SubAgent) -> bool:
    """Return whether an agent can neither continue nor has an outcome that is still to be reported."""
    if _can_work(agent):
        return False
    parent = agents.get(agent.parent_id) if agent.parent_id is not None else None
    unheard = agent.parent_id is not None and (parent is None or not _can_work(parent))
    return not agent.unread or unheard


def _can_work(agent: SubAgent) -> bool:
    return agent.status == "running" or agent.session is not None or agent.past is not None


class AgentHistory:
    """The ``agents`` that a log tells about, by id; complete after :meth:`apply` was called with all events.

    An agent whose end is missing is still ``running`` then. Only the ``kept`` agents that have got the latest
    messages keep their past, and at most ``remembered`` agents are kept at all.
    """

    def __init__(self, agents: dict[str, SubAgent], kept: int, remembered: int) -> None:
        self.agents = agents
        self._most_kept = kept
        self._most_remembered = remembered
        # The agents with a past, in the order of their latest messages.
        self._kept: dict[str, SubAgent] = {}
        # The arguments of calls that start agents, and the agents that calls read; by agent that calls, and call.
        self._starting: dict[tuple[str | None, str], dict[str, Any]] = {}
        self._reading: dict[tuple[str | None, str], SubAgent] = {}

    def apply(self, event: LoggedEvent) -> None:
        """Apply the next event, of the main agent or of a sub-agent."""
        event_id, agent_id, payload = event
        if isinstance(payload, events.SubagentStarted) and agent_id is not None:
            self._start(agent_id, payload)
        if agent_id is not None and (agent := self.agents.get(agent_id)) is not None:
            if isinstance(payload, events.SubagentStarted | events.UserMessage):
                self._keep(agent)
            if agent.past is not None:
                agent.past.append((event_id, payload))
            agent.last_event_id = event_id
            _apply(agent, payload)
        self._note_calls(agent_id, payload)

    def _start(self, agent_id: str, payload: events.SubagentStarted) -> None:
        forget_old(self.agents, self._most_remembered)
        call = self._starting.pop((payload.parent_id, payload.tool_call_id), {})
        model, effort = call.get("model"), call.get("reasoning_effort")
        self.agents[agent_id] = SubAgent(
            id=agent_id,
            type=payload.agent_name,
            name=payload.agent_display_name,
            description=payload.agent_description,
            call_id=payload.tool_call_id,
            parent_id=payload.parent_id,
            started_at="",
            mode=payload.execution_mode or "sync",
            model=payload.model,
            requested_model=model if isinstance(model, str) else None,
            requested_effort=effort if isinstance(effort, str) else None,
            past=[],
        )

    def _keep(self, agent: SubAgent) -> None:
        """Let the agent be the last to lose its past, and limit the number of those that have one."""
        if agent.past is None:
            return
        self._kept.pop(agent.id, None)
        self._kept[agent.id] = agent
        if len(self._kept) > self._most_kept:
            self._kept.pop(next(iter(self._kept))).past = None

    def _note_calls(self, caller: str | None, payload: events.EventPayload | events.UnknownPayload) -> None:
        """Note the calls that start agents, and the events that show that an agent's outcome is known."""
        match payload:
            case events.ToolExecutionStart(tool_name="task"):
                self._starting[caller, payload.tool_call_id] = payload.arguments
            case events.ToolExecutionStart(tool_name="read_agent", arguments={"agent_id": str(wanted)}):
                if (agent := find_named(self.agents, wanted)) is not None:
                    self._reading[caller, payload.tool_call_id] = agent
            case events.ToolExecutionComplete():
                self._starting.pop((caller, payload.tool_call_id), None)
                agent = self._reading.pop((caller, payload.tool_call_id), None)
                if agent is not None and payload.success and agent.status != "running":
                    agent.unread = False
            case events.SystemNotification(kind={"agentId": str(told)}) if told in self.agents:
                self.agents[told].unread = False
            case _:
                pass


def _apply(agent: SubAgent, payload: events.EventPayload | events.UnknownPayload) -> None:
    if not isinstance(payload, events.UnknownPayload):
        agent.count(payload)
    match payload:
        case events.UserMessage(source=str(source)) if source.startswith("agent-"):
            agent.exchanges.append(Exchange(payload.content))
            agent.status, agent.error = "running", None
            if agent.ended:
                # Nobody waits for the answer to a later message.
                agent.mode = "background"
        case events.AssistantMessage(tool_requests=[]) if agent.exchanges:
            agent.exchanges[-1].answer = payload.content
            if agent.ended:
                agent.status, agent.unread = "idle", True
        case events.SubagentCompleted():
            agent.ended = True
            agent.status = "cancelled" if payload.cancelled else "idle"
            agent.unread = agent.mode == "background" and not payload.cancelled
        case events.SubagentFailed():
            _fail(agent, payload.error)
        case events.SessionWarning(warning_type=texts.INTERRUPTION):
            _fail(agent, payload.message)
        case _:
            pass


def _fail(agent: SubAgent, error: str) -> None:
    agent.ended, agent.status, agent.error = True, "failed", error
    agent.unread = agent.mode == "background"
