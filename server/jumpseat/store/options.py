"""Options of a session that outlive its process: ``options.json`` in the session's folder.

A client that resumes need not say again how the session was set up; what it says wins. Only options without
secrets are kept: no provider, no token, no header; of MCP servers, those that hold none (``kept_servers.py``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson
from pydantic import Field, ValidationError

from jumpseat.agent.settings import SessionSettings
from jumpseat_protocol.sessions import CustomAgentConfig, DefaultAgentConfig, MemoryOptions, SessionOptions

if TYPE_CHECKING:
    from jumpseat_protocol.mcp import McpServerConfig

log = logging.getLogger(__name__)

FILE: Final = "options.json"


class KeptOptions(SessionOptions):
    """``lost_mcp_servers`` tells of servers that hold secrets what was not kept of them, by their names;
    ``lost_agent_servers`` the same of custom agents, by theirs."""

    lost_mcp_servers: dict[str, str] = Field(default_factory=dict)
    lost_agent_servers: dict[str, dict[str, str]] = Field(default_factory=dict)


def write_options(folder: Path, settings: SessionSettings, mask: Callable[[str], str] = str) -> None:
    """Keep the options of a session; a disk that refuses costs the options, not the session.

    ``mask`` changes texts that are known to hold secrets.
    """
    servers, lost = _split(settings.mcp_servers, mask)
    agents, lost_of_agents = _split_agents(settings, mask)
    options = KeptOptions(
        mcp_servers=servers or None,
        lost_mcp_servers={**settings.lost_mcp_servers, **lost},
        custom_agents=agents or None,
        lost_agent_servers=lost_of_agents,
        disabled_mcp_servers=settings.disabled_mcp_servers or None,
        plugin_directories=settings.plugin_directories or None,
        allow_all_mcp_server_instructions=settings.mcp_instructions or None,
        mcp_o_auth_token_storage=None if settings.stored_mcp_logins else "in-memory",
        client_name=settings.client_name,
        system_message=settings.system_message,
        available_tools=settings.available_tools,
        excluded_tools=settings.excluded_tools,
        default_agent=DefaultAgentConfig(excluded_tools=settings.default_excluded_tools),
        tool_choice=settings.tool_choice,
        response_format=settings.response_format,
        hosted_tools=settings.hosted_tools,
        large_output=settings.large_output,
        tool_search=settings.tool_search,
        infinite_sessions=settings.infinite_sessions,
        session_limits=settings.session_limits,
        continue_on_auto_mode=settings.continue_on_auto_mode or None,
        reasoning_summary=settings.reasoning_summary,
        model_capabilities=settings.model_capabilities,
        adapter_settings=settings.adapter_settings or None,
        skip_custom_instructions=settings.skip_custom_instructions,
        instruction_directories=settings.instruction_directories,
        organization_custom_instructions=settings.organization_instructions,
        enable_host_git_operations=settings.host_git,
        enable_config_discovery=settings.config_discovery,
        enable_skills=settings.skills,
        skill_directories=settings.skill_directories,
        disabled_skills=settings.disabled_skills,
        memory=MemoryOptions(enabled=settings.memory) if settings.memory is not None else None,
    )
    draft = folder / f"{FILE}.tmp"
    try:
        draft.write_bytes(orjson.dumps(options.wire()))
        draft.replace(folder / FILE)
    except OSError:
        log.exception("%s cannot be written", folder / FILE)


def _split(
    servers: Mapping[str, McpServerConfig], mask: Callable[[str], str]
) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    if not servers:
        return {}, {}
    # Loaded late: most sessions have none.
    from jumpseat.store.stored_servers import split_servers

    return split_servers(servers, mask)


def _split_agents(
    settings: SessionSettings, mask: Callable[[str], str]
) -> tuple[list[CustomAgentConfig], dict[str, dict[str, str]]]:
    """The custom agents without what may be secret in their servers, and what that is."""
    kept: list[CustomAgentConfig] = []
    lost: dict[str, dict[str, str]] = {}
    for agent in settings.custom_agents:
        missing = settings.lost_agent_servers.get(agent.name, {})
        if agent.mcp_servers:
            from jumpseat_protocol.mcp import McpServerConfig

            configs = {name: McpServerConfig.model_validate(one) for name, one in agent.mcp_servers.items()}
            servers, more = _split(configs, mask)
            agent, missing = agent.model_copy(update={"mcp_servers": servers or None}), {**missing, **more}
        kept.append(agent)
        if missing:
            lost[agent.name] = missing
    return kept, lost


def read_options(folder: Path) -> KeptOptions:
    """The options that were kept; none where the file is missing or not ours."""
    try:
        options = KeptOptions.model_validate(orjson.loads((folder / FILE).read_bytes()))
    except (OSError, ValueError, ValidationError):
        return KeptOptions()
    for owner in (options, *(options.custom_agents or ())):
        if owner.mcp_servers:
            owner.mcp_servers = {name: one for name, one in owner.mcp_servers.items() if _usable(folder, name, one)}
    return options


def _usable(folder: Path, name: str, server: dict[str, Any]) -> bool:
    """Whether a server is one; a file that somebody has changed costs its servers, not the session."""
    from jumpseat_protocol.mcp import McpServerConfig

    try:
        McpServerConfig.model_validate(server)
    except ValidationError:
        log.warning("%s: the MCP server %r cannot be used", folder / FILE, name)
        return False
    return True
