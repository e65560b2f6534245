"""``session.agent.*``: the agents that clients brought to a session, and which of them it works as."""

from __future__ import annotations

from jumpseat.agent.session import Session
from jumpseat.errors import InvalidRequestError
from jumpseat.handlers.context import Context
from jumpseat_protocol.agents import (
    AgentCurrentResult,
    AgentInfo,
    AgentListParams,
    AgentListResult,
    AgentSelectParams,
    AgentSelectResult,
    AgentSetPromptParams,
)
from jumpseat_protocol.sessions import CustomAgentConfig, SessionParams


def list_agents(ctx: Context, params: AgentListParams) -> AgentListResult:
    """The custom agents, in the order they were given. There are no built-in ones."""
    agents = ctx.registry.live(params.session_id).settings.custom_agents
    return AgentListResult(agents=[_info(agent, with_prompt=params.include_prompt) for agent in agents])


def reload(ctx: Context, params: SessionParams) -> AgentListResult:
    """The same again: they lie in no file that could have changed."""
    agents = ctx.registry.live(params.session_id).settings.custom_agents
    return AgentListResult(agents=[_info(agent) for agent in agents])


def get_current(ctx: Context, params: SessionParams) -> AgentCurrentResult:
    """The agent that the session works as."""
    agent = ctx.registry.live(params.session_id).settings.custom_agent
    return AgentCurrentResult(agent=None if agent is None else _info(agent))


def select(ctx: Context, params: AgentSelectParams) -> AgentSelectResult:
    """Work as an agent from the next model call on: its prompt, its tools, its servers, its model.

    Raises:
        InvalidRequestError: there is none of that name.
    """
    session = ctx.registry.live(params.session_id)
    agent = _named(session, params.name)
    _work_as(ctx, session, agent.name)
    return AgentSelectResult(agent=_info(agent))


def deselect(ctx: Context, params: SessionParams) -> None:
    """Work as no custom agent from the next model call on."""
    _work_as(ctx, ctx.registry.live(params.session_id), None)


def set_prompt(ctx: Context, params: AgentSetPromptParams) -> None:
    """Give an agent other words, which count from the next model call on.

    Raises:
        InvalidRequestError: there is none of that id.
    """
    session = ctx.registry.live(params.session_id)
    old = _named(session, params.id)
    new = old.model_copy(update={"prompt": params.prompt})
    settings = session.settings
    settings.custom_agents = [new if one is old else one for one in settings.custom_agents]
    ctx.registry.keep_options(session)


def _work_as(ctx: Context, session: Session, name: str | None) -> None:
    before, session.settings.agent = session.settings.agent, name
    session.agent_changed(before)
    ctx.mcp.begin(session)


def _named(session: Session, name: str) -> CustomAgentConfig:
    agents = session.settings.custom_agents
    found = next((one for one in agents if one.name == name), None)
    if found is None:
        known = ", ".join(repr(one.name) for one in agents) or "none"
        raise InvalidRequestError(f"unknown agent {name!r}; the agents of this session: {known}")
    return found


def _info(agent: CustomAgentConfig, *, with_prompt: bool = False) -> AgentInfo:
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
