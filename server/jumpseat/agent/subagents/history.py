"""Rebuild the sub-agents of a resumed session from the events of its log."""

from __future__ import annotations

from jumpseat.agent.subagents.subagent import Exchange, SubAgent
from jumpseat_protocol import events


def restore(
    agents: dict[str, SubAgent], agent_id: str, payload: events.EventPayload | events.UnknownPayload
) -> None:
    """Apply an event of the sub-agent ``agent_id`` to ``agents``.

    An agent whose end is missing stays ``running`` until :meth:`SubAgents.end_interrupted` ends it.
    """
    if isinstance(payload, events.SubagentStarted):
        agents[agent_id] = SubAgent(
            id=agent_id,
            type=payload.agent_name,
            name=payload.agent_display_name,
            description=payload.agent_description,
            call_id=payload.tool_call_id,
            parent_id=payload.parent_id,
            started_at="",
            mode=payload.execution_mode or "sync",
            model=payload.model,
        )
    if (agent := agents.get(agent_id)) is None:
        return
    agent.count(payload) if not isinstance(payload, events.UnknownPayload) else None
    match payload:
        case events.UserMessage(source=str(source)) if source.startswith("agent-"):
            agent.exchanges.append(Exchange(payload.content))
            agent.status = "running"
        case events.AssistantMessage(tool_requests=[]) if agent.exchanges:
            agent.exchanges[-1].answer = payload.content
            if agent.ended:
                agent.status = "idle"
        case events.SubagentCompleted():
            agent.ended = True
            agent.status = "cancelled" if payload.cancelled else "idle"
            agent.unread = agent.mode == "background" and not payload.cancelled
        case events.SubagentFailed():
            agent.ended, agent.status, agent.error = True, "failed", payload.error
            agent.unread = agent.mode == "background"
        case _:
            pass


def mark_told(agents: dict[str, SubAgent], payload: events.EventPayload | events.UnknownPayload) -> None:
    """Apply an event of the main agent, which may show that it was told about a sub-agent."""
    match payload:
        case events.SystemNotification():
            told = payload.kind.get("agentId")
        case events.ToolExecutionStart(tool_name="read_agent", arguments={"agent_id": told}):
            pass
        case _:
            return
    if isinstance(told, str) and (agent := agents.get(told)) is not None:
        agent.unread = False
