"""``session.agent.list`` and ``session.agent.reload``: the agents that clients brought to a session."""

from __future__ import annotations

from jumpseat.handlers.context import Context
from jumpseat_protocol.agents import AgentInfo, AgentListParams, AgentListResult
from jumpseat_protocol.sessions import CustomAgentConfig, SessionParams


def list_agents(ctx: Context, params: AgentListParams) -> AgentListResult:
    """The custom agents, in the order they were given. There are no built-in ones."""
    agents = ctx.registry.live(params.session_id).settings.custom_agents
    return AgentListResult(agents=[_info(agent, with_prompt=params.include_prompt) for agent in agents])


def reload(ctx: Context, params: SessionParams) -> AgentListResult:
    """The same again: they lie in no file that could have changed."""
    agents = ctx.registry.live(params.session_id).settings.custom_agents
    return AgentListResult(agents=[_info(agent, with_prompt=False) for agent in agents])


def _info(agent: CustomAgentConfig, *, with_prompt: bool) -> AgentInfo:
    # Not the MCP servers: their settings may hold keys, and another client may be asking.
    return AgentInfo(
        name=agent.name,
        display_name=agent.display_name or agent.name,
        description=agent.description,
        id=agent.name,
        tools=agent.tools,
        model=agent.model,
        skills=agent.skills,
        prompt=agent.prompt if with_prompt else None,
    )
