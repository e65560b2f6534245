"""What a session is set up with, in the domain's terms. Changed by create, resume and the option methods only."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumpseat.agent.login import Login
from jumpseat_protocol.events import SessionMode
from jumpseat_protocol.sessions import (
    CustomAgentConfig,
    HostedToolConfig,
    InfiniteSessionConfig,
    LargeOutputConfig,
    ModelCapabilities,
    NamedProviderConfig,
    ProviderConfig,
    ProviderModelConfig,
    ResponseFormatConfig,
    SessionLimitsConfig,
    SystemMessageConfig,
    ToolChoiceConfig,
    ToolSearchConfig,
)

if TYPE_CHECKING:
    from jumpseat_protocol.mcp import McpServerConfig


@dataclass(slots=True)
class SessionSettings:
    """``model`` is the name the client asked for, ``None`` for the server's default.

    ``config_discovery`` tells whether the project may bring skills of its own; ``memory`` is unset where the server
    decides.
    ``adapter_settings`` are values for the ``schema`` of the model's adapter.
    ``config_discovery`` lets what lies in the working directory count, where the folder is trusted.
    ``provider``, ``providers``, ``login`` and ``mcp_servers`` hold secrets, which live here and in no file;
    ``stored_mcp_logins`` tells whether MCP servers get the tokens that the user has logged in for.
    ``lost_mcp_servers`` are servers that a resumed session had, with what of them was therefore not kept;
    ``lost_agent_servers`` the same of custom agents, by their names.
    ``continue_on_auto_mode`` lets the provider choose another model, unasked, where this one is rate limited.
    ``found_agents`` are those that lie in files, once they were looked for.
    ``infinite_sessions`` is unset where the server decides.
    ``agent`` names the custom agent that the session works as, and ``default_excluded_tools`` are left out where
    none says what tools it has.
    """

    cwd: Path
    model: str | None = None
    reasoning_effort: str | None = None
    reasoning_summary: str | None = None
    streaming: bool = False
    mode: SessionMode = "interactive"
    client_name: str | None = None
    provider: ProviderConfig | None = field(default=None, repr=False)
    providers: list[NamedProviderConfig] = field(default_factory=list[NamedProviderConfig], repr=False)
    provider_models: list[ProviderModelConfig] = field(default_factory=list[ProviderModelConfig])
    login: Login | None = field(default=None, repr=False)
    web_sockets: bool | None = None
    custom_agents: list[CustomAgentConfig] = field(default_factory=list[CustomAgentConfig])
    found_agents: list[CustomAgentConfig] = field(default_factory=list[CustomAgentConfig])
    agent: str | None = None
    model_capabilities: ModelCapabilities | None = None
    adapter_settings: dict[str, Any] = field(default_factory=dict[str, Any])
    session_limits: SessionLimitsConfig | None = None
    continue_on_auto_mode: bool = False
    system_message: SystemMessageConfig = field(default_factory=SystemMessageConfig)
    available_tools: list[str] | None = None
    excluded_tools: list[str] = field(default_factory=list[str])
    default_excluded_tools: list[str] = field(default_factory=list[str])
    tool_choice: ToolChoiceConfig | None = None
    response_format: ResponseFormatConfig | None = None
    hosted_tools: list[str | HostedToolConfig] = field(default_factory=list[str | HostedToolConfig])
    large_output: LargeOutputConfig = field(default_factory=LargeOutputConfig)
    tool_search: ToolSearchConfig = field(default_factory=ToolSearchConfig)
    infinite_sessions: InfiniteSessionConfig | None = None
    mcp_servers: dict[str, McpServerConfig] = field(
        default_factory=lambda: dict[str, "McpServerConfig"](), repr=False
    )
    lost_mcp_servers: dict[str, str] = field(default_factory=dict[str, str])
    lost_agent_servers: dict[str, dict[str, str]] = field(default_factory=lambda: dict[str, dict[str, str]]())
    disabled_mcp_servers: list[str] = field(default_factory=list[str])
    stored_mcp_logins: bool = True
    mcp_apps: bool = False
    mcp_instructions: bool = False
    plugin_directories: list[str] = field(default_factory=list[str])
    host_git: bool = True
    skip_custom_instructions: bool = False
    instruction_directories: list[str] = field(default_factory=list[str])
    organization_instructions: str | None = None
    config_discovery: bool = False
    skills: bool = True
    skill_directories: list[str] = field(default_factory=list[str])
    disabled_skills: list[str] = field(default_factory=list[str])
    memory: bool | None = None

    @property
    def custom_agent(self) -> CustomAgentConfig | None:
        """The custom agent that the session works as; ``None`` where it works as itself."""
        if self.agent is None:
            return None
        return next((one for one in self.agents if one.name == self.agent), None)

    @property
    def agents(self) -> list[CustomAgentConfig]:
        """All custom agents that are known; of two with one name, that of the client counts."""
        names = {one.name for one in self.custom_agents}
        return [*self.custom_agents, *(one for one in self.found_agents if one.name not in names)]

    def for_model(self) -> SessionSettings:
        """These, with the model and the reasoning effort that the custom agent wants."""
        agent = self.custom_agent
        if agent is None or (agent.model is None and agent.reasoning_effort is None):
            return self
        model = agent.model or self.model
        # What suits one model may be unknown to another.
        effort = agent.reasoning_effort or (self.reasoning_effort if model == self.model else None)
        return replace(self, model=model, reasoning_effort=effort)

    def named_tools(self) -> list[str]:
        """What the client, or the custom agent, names of tools, patterns included."""
        agent = self.custom_agent
        return [*(self.available_tools or ()), *((agent.tools or ()) if agent else ())]
