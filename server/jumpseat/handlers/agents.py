"""``agents.*``: custom agents outside of sessions."""

from __future__ import annotations

from collections.abc import Iterator

import anyio.to_thread

from jumpseat.handlers.context import Context
from jumpseat.handlers.paths import absolute
from jumpseat.handlers.session_agent import info_of
from jumpseat.store.agents import PROJECT_FOLDERS, find_agents
from jumpseat_protocol.agents import AgentDiscoveryPath, AgentListResult, AgentPathsResult, AgentsDiscoverParams


async def discover(ctx: Context, params: AgentsDiscoverParams) -> AgentListResult:
    """The agents in some projects and, unless they are left out, of the user."""
    library = ctx.process.agents
    places = [place for project in params.project_paths for place in library.project_places(absolute(project))]
    if not params.exclude_host_agents:
        places += library.personal()
    found = await anyio.to_thread.run_sync(find_agents, places)
    return AgentListResult(agents=[info_of(agent) for agent in found.items])


def get_discovery_paths(ctx: Context, params: AgentsDiscoverParams) -> AgentPathsResult:
    """Where agents are looked for, there or not."""
    return AgentPathsResult(paths=list(_paths(ctx, params)))


def _paths(ctx: Context, params: AgentsDiscoverParams) -> Iterator[AgentDiscoveryPath]:
    for project in params.project_paths:
        for name in PROJECT_FOLDERS:
            yield AgentDiscoveryPath(
                path=str(absolute(project) / name),
                scope="project",
                preferred_for_creation=name == PROJECT_FOLDERS[0],
                project_path=project,
            )
    if not params.exclude_host_agents:
        for place in ctx.process.agents.personal():
            yield AgentDiscoveryPath(path=str(place.path), scope="user", preferred_for_creation=True)
