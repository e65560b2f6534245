"""Options of a session that outlive its process: ``options.json`` among the session's files.

A client that resumes a session need not repeat its options; options that it gives take precedence. Only options
without secrets are stored: no provider, token or header, and of MCP servers only what ``stored_servers.py`` allows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import orjson
from pydantic import BaseModel, Field, ValidationError

from jumpseat.agent.settings import AUTOPILOT_CONTINUES, SessionSettings, unless_default
from jumpseat.store.session.state_files import StateFiles
from jumpseat_protocol.fieldwise import wire_name
from jumpseat_protocol.sessions import (
    CustomAgentConfig,
    MemoryOptions,
    SessionOptions,
    SessionResumeParams,
)
from jumpseat_protocol.tools import SubagentSettings
from jumpseat_protocol.wire import WireModel

if TYPE_CHECKING:
    from jumpseat_protocol.mcp import McpServerConfig

log = logging.getLogger(__name__)

FILE: Final = "options.json"

_OWN: Final = ("lostMcpServers", "lostAgentServers", "subAgentSettings")


class StoredOptions(NamedTuple):
    """The stored options of a session, and what only the server stores with them, if it has stored anything."""

    options: SessionOptions
    own: OwnOptions | None


class OwnOptions(WireModel):
    """What the server stores beside the options of clients.

    ``lost_mcp_servers`` names the values that were not stored, by server; ``lost_agent_servers`` does the same for
    the servers of custom agents, by agent and server. ``sub_agent_settings`` are the user's.
    """

    lost_mcp_servers: dict[str, str] = Field(default_factory=dict)
    lost_agent_servers: dict[str, dict[str, str]] = Field(default_factory=dict)
    sub_agent_settings: SubagentSettings | None = None


def write_options(state: StateFiles, settings: SessionSettings, mask: Callable[[str], str] = str) -> None:
    """Write the options of a session; a failure is logged and does not affect the session.

    ``mask`` replaces known secrets in a string.
    """
    included = settings.included_builtin_agents
    servers, lost = _split(settings.mcp_servers, mask)
    agents, lost_agent_servers = _split_agents(settings, mask)
    # Not validated again: each session writes its options, and most are unset.
    options = dict[str, object](
        mcp_servers=servers or None,
        lost_mcp_servers={**settings.lost_mcp_servers, **lost} or None,
        custom_agents=agents or None,
        lost_agent_servers=lost_agent_servers or None,
        disabled_mcp_servers=settings.disabled_mcp_servers or None,
        github_mcp_tool_config=settings.github_mcp,
        plugin_directories=settings.plugin_directories or None,
        allow_all_mcp_server_instructions=settings.mcp_instructions or None,
        mcp_o_auth_token_storage=None if settings.stored_mcp_logins else "in-memory",
        client_name=settings.client_name,
        system_message=unless_default(settings.system_message),
        available_tools=settings.available_tools,
        excluded_tools=settings.excluded_tools or None,
        ask_user_disabled=settings.ask_user_disabled or None,
        default_agent={"excludedTools": excluded} if (excluded := settings.default_excluded_tools) else None,
        agent_directories=settings.agent_directories or None,
        excluded_builtin_agents=settings.excluded_builtin_agents or None,
        included_builtin_agents=included if "*" not in included else None,
        tool_choice=settings.tool_choice,
        response_format=settings.response_format,
        hosted_tools=settings.hosted_tools or None,
        large_output=unless_default(settings.large_output),
        tool_search=unless_default(settings.tool_search),
        infinite_sessions=settings.infinite_sessions,
        keep_interrupted_answers=settings.keep_interrupted_answers or None,
        one_off=settings.one_off or None,
        enable_file_change_tracking=settings.file_tracking or None,
        autopilot=_autopilot(settings),
        session_limits=settings.session_limits,
        continue_on_auto_mode=settings.continue_on_auto_mode or None,
        reasoning_summary=settings.reasoning_summary,
        model_capabilities=settings.model_capabilities,
        adapter_settings=settings.adapter_settings or None,
        skip_custom_instructions=settings.skip_custom_instructions,
        instruction_directories=settings.instruction_directories or None,
        organization_custom_instructions=settings.organization_instructions,
        enable_host_git_operations=settings.host_git,
        enable_file_hooks=settings.file_hooks,
        hook_directories=settings.hook_directories or None,
        enable_config_discovery=settings.config_discovery,
        enable_skills=settings.skills,
        skill_directories=settings.skill_directories or None,
        disabled_skills=settings.disabled_skills or None,
        sub_agent_settings=settings.sub_agent_settings,
        sandbox_config=settings.sandbox.without_secrets() if settings.sandbox is not None else None,
        memory=MemoryOptions(enabled=settings.memory) if settings.memory is not None else None,
    )
    try:
        state.write(FILE, orjson.dumps(_to_wire(options)))
    except OSError as error:
        log.error("cannot write %s: %s", state.path(FILE), error.strerror or error)


def _autopilot(settings: SessionSettings) -> dict[str, object] | None:
    """Return the options of the autopilot that are not those of a session without any."""
    stored: dict[str, object] = {}
    if settings.autopilot_continues != AUTOPILOT_CONTINUES:
        stored["maxContinues"] = settings.autopilot_continues
    if not settings.autopilot_continuation:
        stored["continuationEnabled"] = False
    return stored or None


def _to_wire(options: Mapping[str, object]) -> dict[str, object]:
    """Return options as :class:`SessionOptions` would encode them, without its serializer."""
    return {wire_name(name): _encoded(value) for name, value in options.items() if value is not None}


def _encoded(value: object) -> object:
    if isinstance(value, bool | str | dict):
        # A check for a model of pydantic takes longer.
        return cast("object", value)
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    if isinstance(value, list):
        return [_encoded(item) for item in cast("list[object]", value)]
    return value


def _split(
    servers: Mapping[str, McpServerConfig], mask: Callable[[str], str]
) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    if not servers:
        return {}, {}
    # Imported here, because most sessions have no servers.
    from jumpseat.store.session.mcp_servers import split_servers

    return split_servers(servers, mask)


def _split_agents(
    settings: SessionSettings, mask: Callable[[str], str]
) -> tuple[list[CustomAgentConfig], dict[str, dict[str, str]]]:
    """Return the custom agents without possible secrets in their servers, and the names of the values left out."""
    agents: list[CustomAgentConfig] = []
    lost: dict[str, dict[str, str]] = {}
    for agent in settings.custom_agents:
        missing = settings.lost_agent_servers.get(agent.name, {})
        if agent.mcp_servers:
            from jumpseat_protocol.mcp import McpServerConfig

            configs = {name: McpServerConfig.model_validate(value) for name, value in agent.mcp_servers.items()}
            servers, more = _split(configs, mask)
            agent, missing = agent.model_copy(update={"mcp_servers": servers or None}), {**missing, **more}
        agents.append(agent)
        if missing:
            lost[agent.name] = missing
    return agents, lost


def read_options(state: StateFiles) -> StoredOptions:
    """Read the stored options; the result is empty if the file is missing or invalid."""
    try:
        values = orjson.loads(state.read(FILE) or b"")
        # The model of requests to resume a session exists then; another one would take milliseconds to build.
        options = SessionResumeParams.model_validate({**values, "sessionId": "stored"})
        own = {name: values[name] for name in _OWN if values.get(name)}
        stored = StoredOptions(options, OwnOptions.model_validate(own) if own else None)
    except (OSError, ValueError, TypeError, ValidationError):
        return StoredOptions(SessionResumeParams.model_construct(session_id="stored"), None)
    for owner in (options, *(options.custom_agents or ())):
        if owner.mcp_servers:
            owner.mcp_servers = {
                name: value for name, value in owner.mcp_servers.items() if _usable(state, name, value)
            }
    return stored


def keep_tracking(source: StateFiles, target: StateFiles) -> bool:
    """Let a copy of a session track file changes if the session does; return whether it does.

    Raises:
        OSError: the option cannot be written.
    """
    if not read_options(source).options.enable_file_change_tracking:
        return False
    target.write(FILE, orjson.dumps({"enableFileChangeTracking": True}))
    return True


def _usable(state: StateFiles, name: str, server: dict[str, Any]) -> bool:
    """Return whether a stored server is valid; somebody may have edited the file."""
    from jumpseat_protocol.mcp import McpServerConfig

    try:
        McpServerConfig.model_validate(server)
    except ValidationError:
        log.warning("%s: the MCP server %r is invalid", state.path(FILE), name)
        return False
    return True
