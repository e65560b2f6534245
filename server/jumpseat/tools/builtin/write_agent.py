"""``write_agent``: send a message to sub-agents."""

from __future__ import annotations

from typing import Final, Literal

from jumpseat.agent.session.session import Session
from jumpseat.tools.session_tool import Resources, SessionTool
from jumpseat.tools.tool import ToolArgs, ToolContext, ToolOutcome, failure


class WriteAgentArgs(ToolArgs):
    message: str
    agent_id: str | None = None
    agent_ids: list[str] | None = None
    scope: Literal["siblings", "children"] | None = None


async def _run(session: Session, _resources: Resources, _ctx: ToolContext, args: WriteAgentArgs) -> ToolOutcome:
    if sum(value is not None for value in (args.agent_id, args.agent_ids, args.scope)) != 1:
        return failure('Provide exactly one of "agent_id", "agent_ids", or "scope"')
    # Imported with the first sub-agent.
    from jumpseat.agent.subagents.subagents import sub_agents

    agents, own_id = sub_agents(session), None if session.identity is None else session.identity.id
    sender = own_id or session.id
    if args.agent_id is not None:
        agent = await agents.look_up(args.agent_id)
        if agent is None or agent.id == own_id:
            return failure("Agent not found")
        if (problem := agents.send(agent, args.message, sender)) is not None:
            return failure(problem)
        return ToolOutcome(f"Message delivered to agent {agent.id}. Use read_agent to check the agent's response.")
    if args.scope is not None:
        found = {agent.id: agent for agent in agents.of_scope(session.identity, args.scope)}
    else:
        found = {agent_id: agents.find(agent_id) for agent_id in dict.fromkeys(args.agent_ids or [])}
    lines: list[str] = []
    for agent_id, agent in found.items():
        status = "unknown" if agent is None else agent.status
        delivered = agent is not None and agent.id != own_id and agents.send(agent, args.message, sender) is None
        lines.append(f"- {agent_id}, {'delivered' if delivered else 'not delivered'}, task_status={status}")
    delivered_to = sum(", delivered," in line for line in lines)
    return ToolOutcome(
        "\n".join([f"Message delivered to {delivered_to} agent{'s' * (delivered_to != 1)}.", *lines])
    )


TOOL: Final = SessionTool(
    name="write_agent",
    description="Send a message to sub-agents: to agent_id, agent_ids or scope.",
    args=WriteAgentArgs,
    position=215,
    follows="task",
    for_plans=True,
    run=_run,
    intention=lambda _args: "Send a message to sub-agents",
    is_offered=lambda session, _resources: session.services.agent_limits.depth > 0,
)
