"""``agents.*``: custom agents outside of sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import anyio.to_thread
from pydantic import ValidationError

from jumpseat.agent.agent_files import AgentFile
from jumpseat.sessions.context import Context
from jumpseat.sessions.paths import absolute_path
from jumpseat.store.project.agents import PROJECT_FOLDERS, Place, find_agents
from jumpseat_protocol.agents import (
    AgentDiscoveryPath,
    AgentInfo,
    AgentListResult,
    AgentPathsResult,
    AgentsDiscoverParams,
)
from jumpseat_protocol.sessions import CustomAgentConfig


async def discover(ctx: Context, params: AgentsDiscoverParams) -> AgentListResult:
    """Return the agents of named folders, of some projects and, unless excluded, of the user."""
    library = ctx.process.agents
    places = [Place(absolute_path(folder), None) for folder in params.agent_directories]
    places += [
        place for project in params.project_paths for place in library.project_places(absolute_path(project))
    ]
    if not params.exclude_host_agents:
        places += library.personal()
    found = await anyio.to_thread.run_sync(find_agents, places)
    return AgentListResult(agents=[agent_to_wire(agent, ctx.process.secrets) for agent in found.items])


def get_discovery_paths(ctx: Context, params: AgentsDiscoverParams) -> AgentPathsResult:
    """Return the folders that are searched for agents, whether they exist or not."""
    return AgentPathsResult(paths=list(_paths(ctx, params)))


def _paths(ctx: Context, params: AgentsDiscoverParams) -> Iterator[AgentDiscoveryPath]:
    for project in params.project_paths:
        for name in PROJECT_FOLDERS:
            yield AgentDiscoveryPath(
                path=str(absolute_path(project) / name),
                scope="project",
                preferred_for_creation=name == PROJECT_FOLDERS[0],
                project_path=project,
            )
    if not params.exclude_host_agents:
        for place in ctx.process.agents.personal():
            yield AgentDiscoveryPath(path=str(place.path), scope="user", preferred_for_creation=True)


def agent_to_wire(agent: CustomAgentConfig, mask: Callable[[str], str], *, with_prompt: bool = False) -> AgentInfo:
    """Describe an agent to clients.

    MCP servers whose configuration may hold a key are left out, because the client may not be the one that gave it;
    ``mask`` replaces known secrets in a string.
    """
    file = agent if isinstance(agent, AgentFile) else None
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
        models=[agent.model] if agent.model is not None else None,
        skills=agent.skills,
        mcp_servers=_servers(agent, mask) if agent.mcp_servers else None,
        prompt=agent.prompt if with_prompt else None,
    )


def _servers(agent: CustomAgentConfig, mask: Callable[[str], str]) -> dict[str, dict[str, Any]] | None:
    # Imported here, because most agents have no servers.
    from jumpseat.store.session.mcp_servers import split_servers
    from jumpseat_protocol.mcp_servers import McpServerConfig

    configs: dict[str, McpServerConfig] = {}
    for name, value in (agent.mcp_servers or {}).items():
        # Those in files have not been checked.
        with suppress(ValidationError):
            configs[name] = McpServerConfig.model_validate(value)
    return split_servers(configs, mask)[0] or None
