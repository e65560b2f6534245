"""``list_agents``: list the sub-agents of the session."""

from __future__ import annotations

from typing import Final, Literal

from jumpseat.agent.session.session import Session
from jumpseat.tools.session_tool import Resources, SessionTool
from jumpseat.tools.tool import ToolArgs, ToolContext, ToolOutcome


class ListAgentsArgs(ToolArgs):
    include_completed: bool = False
    scope: Literal["siblings", "children", "all"] = "children"


async def _run(session: Session, _resources: Resources, _ctx: ToolContext, args: ListAgentsArgs) -> ToolOutcome:
    # Imported with the first sub-agent.
    from jumpseat.agent.subagents import texts
    from jumpseat.agent.subagents.subagents import sub_agents

    agents = sub_agents(session)
    shown = [
        agent
        for agent in agents.of_scope(session.identity, args.scope)
        if args.include_completed or agent.status in ("running", "idle")
    ]
    own_id = None if session.identity is None else session.identity.id
    relations = {agent.id: "child" if agent.parent_id == own_id else "other" for agent in shown}
    if session.identity is not None:
        relations |= {agent.id: "sibling" for agent in shown if agent.parent_id == session.identity.parent_id}
    return ToolOutcome(texts.listing(shown, {agent.id: agents.elapsed_s(agent) for agent in shown}, relations))


TOOL: Final = SessionTool(
    name="list_agents",
    description="List sub-agents.",
    args=ListAgentsArgs,
    position=214,
    follows="task",
    read_only=True,
    run=_run,
    intention=lambda _args: "List the sub-agents",
    is_offered=lambda session, _resources: session.services.agent_limits.depth > 0,
)
