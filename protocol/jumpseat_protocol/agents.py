"""``agents.*`` and ``session.agent.*``: custom agents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import Field, StrictBool

from jumpseat_protocol.limits import PathTexts
from jumpseat_protocol.sessions import AgentSource, SessionParams
from jumpseat_protocol.wire import Method, WireModel


class AgentListParams(WireModel):
    session_id: str
    include_built_in_agents: StrictBool = False
    """Whether the built-in agents are listed."""
    include_prompt: StrictBool = False
    """Whether instructions are returned."""


class AgentInfo(WireModel):
    """``id`` equals ``name``. ``prompt`` is set on request, ``path`` for agents in files, ``source`` for those and
    the built-in ones. ``mcp_servers`` are those without possible secrets in their configuration.
    """

    name: str
    """The name of the agent."""
    display_name: str
    description: str
    id: str
    """The same as ``name``."""
    path: str | None = None
    """The file of the agent."""
    source: AgentSource | None = None
    """Where the agent comes from."""
    user_invocable: StrictBool = True
    """Whether people may select it."""
    tools: list[str] | None = None
    """The tools that it may use."""
    model: str | None = None
    """The id of its model."""
    models: list[str] | None = None
    """The models that it can use, the preferred one first."""
    skills: list[str] | None = None
    """The skills that it has."""
    mcp_servers: dict[str, dict[str, Any]] | None = None
    """Its own MCP servers, by name."""
    prompt: str | None = None
    """Its instructions."""


class AgentListResult(WireModel):
    agents: list[AgentInfo]
    """The agents."""


class AgentSelectParams(WireModel):
    """``name`` is the name or the id of an agent."""

    session_id: str
    name: str
    """The name of the agent."""


class AgentSelectResult(WireModel):
    agent: AgentInfo
    """The agent."""


class AgentCurrentResult(WireModel):
    """``agent`` is ``null`` if no custom agent is selected."""

    sent_as_null = ("agent",)

    agent: AgentInfo | None = None
    """The agent, or ``null``."""


class AgentSetPromptParams(WireModel):
    session_id: str
    id: str
    """The id of the agent."""
    prompt: str
    """Its new instructions."""


class AgentsDiscoverParams(WireModel):
    """``exclude_host_agents`` excludes the user's own agents; ``agent_directories`` are further folders."""

    project_paths: PathTexts = Field(default_factory=list)
    """The folders of projects, as absolute paths."""
    agent_directories: PathTexts = Field(default_factory=list)
    """Further folders of agents."""
    exclude_host_agents: StrictBool = False
    """Whether the user's own agents are left out."""


class AgentDiscoveryPath(WireModel):
    """A folder that is searched for agents. ``preferred_for_creation`` marks one folder of each scope."""

    path: str
    """The folder."""
    scope: Literal["user", "project"]
    """Whose agents it holds."""
    preferred_for_creation: StrictBool
    """Whether new agents belong there."""
    project_path: str | None = None
    """The folder of the project."""


class AgentPathsResult(WireModel):
    paths: list[AgentDiscoveryPath]
    """The folders."""


METHODS: Final[Mapping[str, Method]] = {
    "agents.discover": Method(AgentsDiscoverParams, AgentListResult, "Find agents in projects and the home."),
    "agents.getDiscoveryPaths": Method(
        AgentsDiscoverParams, AgentPathsResult, "List the folders that are searched for agents."
    ),
    "session.agent.list": Method(AgentListParams, AgentListResult, "List the agents of the session."),
    "session.agent.reload": Method(SessionParams, AgentListResult, "Read the agents again."),
    "session.agent.getCurrent": Method(SessionParams, AgentCurrentResult, "Return the selected agent."),
    "session.agent.select": Method(AgentSelectParams, AgentSelectResult, "Select an agent."),
    "session.agent.deselect": Method(SessionParams, None, "Select no agent."),
    "session.agent.setPrompt": Method(AgentSetPromptParams, None, "Change the instructions of an agent."),
}
