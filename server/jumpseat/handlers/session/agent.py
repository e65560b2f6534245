"""``session.agent.*``: the custom agents of a session, and the selected one."""

from __future__ import annotations

import anyio.to_thread

from jumpseat.agent.session.session import Session
from jumpseat.agent.settings import SessionSettings
from jumpseat.agent.subagents.definitions import built_in_agents
from jumpseat.errors import InvalidRequestError
from jumpseat.handlers.agents import agent_to_wire
from jumpseat.sessions.context import Context
from jumpseat_protocol.agents import (
    AgentCurrentResult,
    AgentListParams,
    AgentListResult,
    AgentSelectParams,
    AgentSelectResult,
    AgentSetPromptParams,
)
from jumpseat_protocol.sessions import CustomAgentConfig, SessionParams


async def list_(ctx: Context, params: AgentListParams) -> AgentListResult:
    """Return the custom agents: those of clients in the given order, then those in files; built-in ones on request.

    Built-in agents work as sub-agents only, and cannot be selected.
    """
    settings = ctx.registry.live(params.session_id).settings
    if not settings.found_agents:
        await _find_agents(ctx, settings)
    agents = [
        agent_to_wire(agent, ctx.process.secrets, with_prompt=params.include_prompt) for agent in settings.agents
    ]
    if params.include_built_in_agents:
        agents += [
            agent_to_wire(agent.config(), ctx.process.secrets, with_prompt=params.include_prompt).model_copy(
                update={"source": "builtin", "user_invocable": False}
            )
            for agent in built_in_agents(settings)
        ]
    return AgentListResult(agents=agents)


async def reload(ctx: Context, params: SessionParams) -> AgentListResult:
    """Read the agent files again and return all agents. A selected agent whose file is gone is deselected."""
    session = ctx.registry.live(params.session_id)
    await reload_agents(ctx, session)
    ctx.mcp.begin(session)
    return AgentListResult(agents=[agent_to_wire(agent, ctx.process.secrets) for agent in session.settings.agents])


def get_current(ctx: Context, params: SessionParams) -> AgentCurrentResult:
    """Return the selected agent, or ``null``."""
    agent = ctx.registry.live(params.session_id).settings.custom_agent
    return AgentCurrentResult(agent=None if agent is None else agent_to_wire(agent, ctx.process.secrets))


async def select(ctx: Context, params: AgentSelectParams) -> AgentSelectResult:
    """Select an agent: its prompt, tools, MCP servers and model are used from the next model call on.

    Raises:
        InvalidRequestError: there is no agent of that name.
    """
    session = ctx.registry.live(params.session_id)
    if all(agent.name != params.name for agent in session.settings.agents):
        await _find_agents(ctx, session.settings)
    agent = _agent_named(session, params.name)
    _set_agent(ctx, session, agent.name)
    return AgentSelectResult(agent=agent_to_wire(agent, ctx.process.secrets))


def deselect(ctx: Context, params: SessionParams) -> None:
    """Select no custom agent, from the next model call on."""
    _set_agent(ctx, ctx.registry.live(params.session_id), None)


def set_prompt(ctx: Context, params: AgentSetPromptParams) -> None:
    """Replace the prompt of an agent, from the next model call on.

    Raises:
        InvalidRequestError: there is no agent with that id.
    """
    session = ctx.registry.live(params.session_id)
    old = _agent_named(session, params.id)
    new = old.model_copy(update={"prompt": params.prompt})
    settings = session.settings
    settings.set_options(custom_agents=[new if agent is old else agent for agent in settings.options.custom_agents])
    settings.found_agents = [new if agent is old else agent for agent in settings.found_agents]
    ctx.registry.store_options(session)


async def reload_agents(ctx: Context, session: Session) -> None:
    """Read the agent files of a session again, and say so if the selected agent is gone."""
    before = session.settings.options.agent
    await _find_agents(ctx, session.settings)
    session.announce_agent(before)


async def _find_agents(ctx: Context, settings: SessionSettings) -> None:
    settings.found_agents = await anyio.to_thread.run_sync(ctx.process.agents.find, settings)


def _set_agent(ctx: Context, session: Session, name: str | None) -> None:
    before = session.settings.options.agent
    session.settings.set_options(agent=name)
    session.announce_agent(before)
    ctx.mcp.begin(session)


def _agent_named(session: Session, name: str) -> CustomAgentConfig:
    agents = session.settings.agents
    agent = next((agent for agent in agents if agent.name == name), None)
    if agent is None:
        known = ", ".join(repr(agent.name) for agent in agents) or "none"
        raise InvalidRequestError(f"unknown agent {name!r}; the agents of this session: {known}")
    return agent
