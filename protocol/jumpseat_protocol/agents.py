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
    include_prompt: StrictBool = False


class AgentInfo(WireModel):
    """``id`` equals ``name``. ``prompt`` is set on request, ``path`` for agents in files, ``source`` for those and
    the built-in ones. ``mcp_servers`` are those without possible secrets in their configuration.
    """

    name: str
    display_name: str
    description: str
    id: str
    path: str | None = None
    source: AgentSource | None = None
    user_invocable: StrictBool = True
    tools: list[str] | None = None
    model: str | None = None
    models: list[str] | None = None
    skills: list[str] | None = None
    mcp_servers: dict[str, dict[str, Any]] | None = None
    prompt: str | None = None


class AgentListResult(WireModel):
    agents: list[AgentInfo]


class AgentSelectParams(WireModel):
    """``name`` is the name or the id of an agent."""

    session_id: str
    name: str


class AgentSelectResult(WireModel):
    agent: AgentInfo


class AgentCurrentResult(WireModel):
    """``agent`` is ``null`` if no custom agent is selected."""

    sent_as_null = ("agent",)

    agent: AgentInfo | None = None


class AgentSetPromptParams(WireModel):
    session_id: str
    id: str
    prompt: str


class AgentsDiscoverParams(WireModel):
    """``exclude_host_agents`` excludes the user's own agents; ``agent_directories`` are further folders."""

    project_paths: PathTexts = Field(default_factory=list)
    agent_directories: PathTexts = Field(default_factory=list)
    exclude_host_agents: StrictBool = False


class AgentDiscoveryPath(WireModel):
    """A folder that is searched for agents. ``preferred_for_creation`` marks one folder of each scope."""

    path: str
    scope: Literal["user", "project"]
    preferred_for_creation: StrictBool
    project_path: str | None = None


class AgentPathsResult(WireModel):
    paths: list[AgentDiscoveryPath]


METHODS: Final[Mapping[str, Method]] = {
    "agents.discover": Method(AgentsDiscoverParams, AgentListResult),
    "agents.getDiscoveryPaths": Method(AgentsDiscoverParams, AgentPathsResult),
    "session.agent.list": Method(AgentListParams, AgentListResult),
    "session.agent.reload": Method(SessionParams, AgentListResult),
    "session.agent.getCurrent": Method(SessionParams, AgentCurrentResult),
    "session.agent.select": Method(AgentSelectParams, AgentSelectResult),
    "session.agent.deselect": Method(SessionParams, None),
    "session.agent.setPrompt": Method(AgentSetPromptParams, None),
}
