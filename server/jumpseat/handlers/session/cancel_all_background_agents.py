"""``session.cancelAllBackgroundAgents``: end the sub-agents in the background."""

from __future__ import annotations

from jumpseat.agent.subagents.subagents import sub_agents
from jumpseat.sessions.context import Context
from jumpseat_protocol.sessions import SessionParams


async def cancel_all_background_agents(ctx: Context, params: SessionParams) -> int:
    """End all sub-agents in the background, and return how many worked."""
    session = ctx.registry.live(params.session_id)
    return await sub_agents(session).cancel_all() if session.agents is not None else 0
