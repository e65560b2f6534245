"""``session.agent.*``: the agents that a session may work as, and which of them it works as."""

from __future__ import annotations

import anyio.to_thread

from jumpseat.agent.agent_files import AgentFile
from jumpseat.agent.session.session import Session
from jumpseat.agent.settings import SessionSettings
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


async def list_agents(ctx: Context, params: AgentListParams) -> AgentListResult:
    """The custom agents: those of clients in the order they were given, then those in files. None are built in."""
    settings = ctx.registry.live(params.session_id).settings
    if not settings.found_agents:
        await _look(ctx, settings)
    return AgentListResult(agents=[info_of(agent, with_prompt=params.include_prompt) for agent in settings.agents])


async def reload(ctx: Context, params: SessionParams) -> AgentListResult:
    """The same, with the files read anew; what a session works as changes with its file, and ends without it."""
    session = ctx.registry.live(params.session_id)
    before = session.settings.agent
    await _look(ctx, session.settings)
    session.agent_changed(before)
    ctx.mcp.begin(session)
    return AgentListResult(agents=[info_of(agent) for agent in session.settings.agents])


def get_current(ctx: Context, params: SessionParams) -> AgentCurrentResult:
    """The agent that the session works as."""
    agent = ctx.registry.live(params.session_id).settings.custom_agent
    return AgentCurrentResult(agent=None if agent is None else info_of(agent))


async def select(ctx: Context, params: AgentSelectParams) -> AgentSelectResult:
    """Work as an agent from the next model call on: its prompt, its tools, its servers, its model.

    Raises:
        InvalidRequestError: there is none of that name.
    """
    session = ctx.registry.live(params.session_id)
    if all(one.name != params.name for one in session.settings.agents):
        await _look(ctx, session.settings)
    agent = _named(session, params.name)
    _work_as(ctx, session, agent.name)
    return AgentSelectResult(agent=info_of(agent))


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
    settings.found_agents = [new if one is old else one for one in settings.found_agents]
    ctx.registry.keep_options(session)


async def _look(ctx: Context, settings: SessionSettings) -> None:
    settings.found_agents = await anyio.to_thread.run_sync(ctx.process.agents.find, settings)


def _work_as(ctx: Context, session: Session, name: str | None) -> None:
    before, session.settings.agent = session.settings.agent, name
    session.agent_changed(before)
    ctx.mcp.begin(session)


def _named(session: Session, name: str) -> CustomAgentConfig:
    agents = session.settings.agents
    found = next((one for one in agents if one.name == name), None)
    if found is None:
        known = ", ".join(repr(one.name) for one in agents) or "none"
        raise InvalidRequestError(f"unknown agent {name!r}; the agents of this session: {known}")
    return found


def info_of(agent: CustomAgentConfig, *, with_prompt: bool = False) -> AgentInfo:
    """What clients are told of an agent."""
    file = agent if isinstance(agent, AgentFile) else None
    # Not the MCP servers: their settings may hold keys, and another client may be asking.
    return AgentInfo(
        name=agent.name,
        display_name=agent.display_name or agent.name,
        description=agent.description,
        id=agent.name,
        path=file.path if file else None,
        source=file.source if file else None,
        user_invocable=file.user_invocable if file else True,
        tools=agent.tools,
        model=agent.model,
        skills=agent.skills,
        prompt=agent.prompt if with_prompt else None,
    )
