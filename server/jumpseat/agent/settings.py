"""The settings of a session. Only creation, resumption and the option methods change them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from jumpseat.agent.login import Login
from jumpseat_protocol.events import SessionMode
from jumpseat_protocol.lazy_dataclasses import dataclass
from jumpseat_protocol.sandbox import SandboxConfig
from jumpseat_protocol.sessions import (
    CustomAgentConfig,
    GitHubMcpToolConfig,
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
from jumpseat_protocol.tools import SubagentSettings
from jumpseat_protocol.wire import WireModel

if TYPE_CHECKING:
    from jumpseat_protocol.mcp import McpServerConfig


C = TypeVar("C", bound=WireModel)

_NONE: Final[Mapping[str, Any]] = MappingProxyType({})

AUTOPILOT_CONTINUES: Final = 5
"""The number of times that a session in autopilot mode goes on by itself, unless a client sets another."""


@cache
def _default(kind: type[C]) -> C:
    """Return the values of ``kind`` without any options: the same object for all sessions, which only read it."""
    # There is nothing to validate, and many sessions never need the validator.
    return kind.model_construct()


def unless_default(value: C) -> C | None:
    """Return an option of a session, or ``None`` if its values are those of a session without it."""
    return None if value is _default(type(value)) else value


@dataclass(slots=True)
class SessionSettings:
    """All settings of one session. Lists and tables are replaced as a whole: those without entries are shared.

    ``model``: the name requested by the client; ``None`` for the server's default.
    ``adapter_settings``: values for the ``schema`` of the model's adapter.
    ``provider``, ``providers``, ``login``, ``mcp_servers``: contain secrets, and are therefore in no file.
    ``continue_on_auto_mode``: lets the provider choose another model, unasked, when this one is rate limited.
    ``agent``: the name of the selected custom agent.
    ``default_excluded_tools``: excluded unless the custom agent lists its tools.
    ``found_agents``: custom agents read from files.
    ``allowed_models``: the only models that the session may use; ``None`` for all.
    ``additional_directories``: absolute folders whose skills and agents are those of the project, too.
    ``agent_directories``, ``hook_directories``: absolute folders whose agents and hook files the client wants.
    ``excluded_builtin_agents``: built-in agents that cannot be started; ``included_builtin_agents``: the only ones
    that can, ``*`` for all.
    ``ask_user_disabled``: whether the model may not ask the user, although a client could.
    ``sub_agent_settings``: models, efforts and limits of sub-agents that the user has set for the open session.
    ``sub_agent_deltas``: whether clients get the deltas of sub-agents.
    ``stored_mcp_logins``: whether MCP servers get the tokens of the user's stored logins.
    ``lost_mcp_servers``: MCP servers of a resumed session that cannot be restored, by name, each with the parts of
    its configuration that were not stored; ``lost_agent_servers``: the same per custom agent.
    ``github_mcp``: the tools of GitHub's MCP server; ``None``: that server is not wanted by the client.
    ``config_discovery``: whether configuration in the working directory, such as skills, is used if it is trusted.
    ``sandbox``: the confinement of commands that the client has chosen; ``None``: that of the server.
    ``keep_interrupted_answers``: whether the shown part of an aborted answer stays in the conversation.
    ``file_tracking``: whether the changes of files by commands are recorded, so that a rewind can restore files.
    ``autopilot_continuation``: whether the session goes on by itself in autopilot mode; ``autopilot_continues``:
    how often at most for one prompt.
    ``one_off``: whether the session is for one prompt only, which lists mark.
    ``infinite_sessions``, ``memory``: ``None`` leaves the decision to the server.
    """

    cwd: Path
    additional_directories: Sequence[str] = ()
    model: str | None = None
    allowed_models: list[str] | None = None
    reasoning_effort: str | None = None
    reasoning_summary: str | None = None
    streaming: bool = False
    mode: SessionMode = "interactive"
    client_name: str | None = None
    provider: ProviderConfig | None = field(default=None, repr=False)
    providers: Sequence[NamedProviderConfig] = field(default=(), repr=False)
    provider_models: Sequence[ProviderModelConfig] = ()
    login: Login | None = field(default=None, repr=False)
    web_sockets: bool | None = None
    custom_agents: Sequence[CustomAgentConfig] = ()
    found_agents: Sequence[CustomAgentConfig] = ()
    agent: str | None = None
    agent_directories: Sequence[str] = ()
    excluded_builtin_agents: Sequence[str] = ()
    included_builtin_agents: Sequence[str] = ("*",)
    sub_agent_settings: SubagentSettings | None = None
    sub_agent_deltas: bool = True
    model_capabilities: ModelCapabilities | None = None
    adapter_settings: Mapping[str, Any] = field(default_factory=lambda: _NONE)
    session_limits: SessionLimitsConfig | None = None
    continue_on_auto_mode: bool = False
    system_message: SystemMessageConfig = field(default_factory=lambda: _default(SystemMessageConfig))
    available_tools: list[str] | None = None
    excluded_tools: Sequence[str] = ()
    ask_user_disabled: bool = False
    default_excluded_tools: Sequence[str] = ()
    tool_choice: ToolChoiceConfig | None = None
    response_format: ResponseFormatConfig | None = None
    hosted_tools: Sequence[str | HostedToolConfig] = ()
    large_output: LargeOutputConfig = field(default_factory=lambda: _default(LargeOutputConfig))
    tool_search: ToolSearchConfig = field(default_factory=lambda: _default(ToolSearchConfig))
    infinite_sessions: InfiniteSessionConfig | None = None
    keep_interrupted_answers: bool = False
    one_off: bool = False
    file_tracking: bool = False
    autopilot_continuation: bool = True
    autopilot_continues: int = AUTOPILOT_CONTINUES
    mcp_servers: Mapping[str, McpServerConfig] = field(default_factory=lambda: _NONE, repr=False)
    lost_mcp_servers: Mapping[str, str] = field(default_factory=lambda: _NONE)
    lost_agent_servers: Mapping[str, dict[str, str]] = field(default_factory=lambda: _NONE)
    disabled_mcp_servers: Sequence[str] = ()
    github_mcp: GitHubMcpToolConfig | None = None
    stored_mcp_logins: bool = True
    mcp_apps: bool = False
    mcp_instructions: bool = False
    plugin_directories: Sequence[str] = ()
    host_git: bool = True
    file_hooks: bool | None = None
    hook_directories: Sequence[str] = ()
    skip_custom_instructions: bool = False
    instruction_directories: Sequence[str] = ()
    organization_instructions: str | None = None
    config_discovery: bool = False
    skills: bool = True
    skill_directories: Sequence[str] = ()
    disabled_skills: Sequence[str] = ()
    memory: bool | None = None
    sandbox: SandboxConfig | None = field(default=None, repr=False)

    @property
    def custom_agent(self) -> CustomAgentConfig | None:
        """The selected custom agent; ``None`` if there is none."""
        if self.agent is None:
            return None
        return next((agent for agent in self.agents if agent.name == self.agent), None)

    @property
    def agents(self) -> list[CustomAgentConfig]:
        """All known custom agents; one registered by the client hides one from a file with the same name."""
        names = {agent.name for agent in self.custom_agents}
        return [*self.custom_agents, *(agent for agent in self.found_agents if agent.name not in names)]

    def for_model(self) -> SessionSettings:
        """Return these settings with the custom agent's model and reasoning effort, if it has any."""
        agent = self.custom_agent
        if agent is None or (agent.model is None and agent.reasoning_effort is None):
            return self
        model = agent.model or self.model
        # The session's effort may be unknown to the agent's model.
        effort = agent.reasoning_effort or (self.reasoning_effort if model == self.model else None)
        return replace(self, model=model, reasoning_effort=effort)

    def allows(self, model: str | None) -> bool:
        """Return whether the session may use ``model``."""
        return self.allowed_models is None or model in self.allowed_models

    def named_tools(self) -> list[str]:
        """Return the names and patterns of tools listed by the client and by the custom agent."""
        agent = self.custom_agent
        return [*(self.available_tools or ()), *((agent.tools or ()) if agent else ())]
