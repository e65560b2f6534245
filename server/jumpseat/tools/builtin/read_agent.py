"""``read_agent``: read the answers of a sub-agent."""

from __future__ import annotations

from typing import Final

import anyio
from pydantic import Field

from jumpseat.agent.session.session import Session
from jumpseat.tools.session_tool import Resources, SessionTool
from jumpseat.tools.tool import ToolArgs, ToolContext, ToolOutcome, failure

WAIT_S: Final = 60.0
LONGEST_WAIT_S: Final = 600.0


class ReadAgentArgs(ToolArgs):
    agent_id: str
    wait: bool = Field(default=False, description="Wait for its end")
    timeout: float = Field(WAIT_S, description="Seconds")
    since_turn: int = 0


async def _run(session: Session, _resources: Resources, _ctx: ToolContext, args: ReadAgentArgs) -> ToolOutcome:
    # Imported with the first sub-agent.
    from jumpseat.agent.subagents import texts
    from jumpseat.agent.subagents.subagents import sub_agents

    agents = sub_agents(session)
    if not args.agent_id:
        return failure("Missing agent_id")
    agent = await agents.look_up(args.agent_id)
    if agent is None:
        return failure("Agent not found")
    if args.wait and agent.status == "running":
        with anyio.move_on_after(min(max(args.timeout, 0.0), LONGEST_WAIT_S)):
            await agent.done.wait()
    if agent.status != "running":
        agent.unread = False
    return ToolOutcome(texts.report(agent, agents.elapsed_s(agent), args.since_turn))


TOOL: Final = SessionTool(
    name="read_agent",
    description="Read the answers of a sub-agent.",
    args=ReadAgentArgs,
    position=213,
    follows="task",
    read_only=True,
    run=_run,
    intention=lambda args: f"Read the answers of agent {args.agent_id}",
)
