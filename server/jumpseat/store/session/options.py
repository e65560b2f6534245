"""Options of a session that outlive its process: ``options.json`` among the session's files.

A client that resumes a session need not repeat its options; options that it gives take precedence. Only options
without secrets are stored: no provider, token or header, and of MCP servers only what ``stored_servers.py`` allows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, cast

import orjson
from pydantic import BaseModel, Field, ValidationError

from jumpseat.agent.settings import HostPolicy, SessionSettings
from jumpseat.errors import StoreError
from jumpseat.store.session.state_files import StateFiles
from jumpseat_protocol.lazy_validation import wire_name
from jumpseat_protocol.sessions import CustomAgentConfig, StoredOptions
from jumpseat_protocol.tools import SubagentSettings
from jumpseat_protocol.wire import WireModel

log = logging.getLogger(__name__)

FILE: Final = "options.json"


class OwnOptions(WireModel):
    """The settings that the server stores beside the options of clients, under their names.

    ``lost_mcp_servers`` names the values that were not stored, by server; ``lost_agent_servers`` does the same for
    the servers of custom agents, by agent and server. ``sub_agent_settings`` are the user's. ``host_policies`` are
    those that hosts have set: they hold for whoever resumes the session.
    """

    lost_mcp_servers: dict[str, str] = Field(default_factory=dict)
    lost_agent_servers: dict[str, dict[str, str]] = Field(default_factory=dict)
    sub_agent_settings: SubagentSettings | None = None
    host_policies: list[HostPolicy] = Field(default_factory=list[HostPolicy])


def write_options(state: StateFiles, settings: SessionSettings, mask: Callable[[str], str] = str) -> None:
    """Write the options of a session that do not have their default values.

    A failure is logged and does not affect the session. ``mask`` replaces known secrets in a string.
    """
    options = settings.options
    servers, lost = _split(options.mcp_servers, mask)
    agents, lost_agent_servers = _split_agents(settings, mask)
    sandbox = options.sandbox_config
    stored = {
        **vars(options),
        "mcp_servers": servers,
        "custom_agents": agents,
        "sandbox_config": sandbox.without_secrets() if sandbox is not None else None,
        "lost_mcp_servers": {**settings.lost_mcp_servers, **lost},
        "lost_agent_servers": lost_agent_servers,
        "sub_agent_settings": settings.sub_agent_settings,
        "host_policies": settings.host_policies,
    }
    # Without pydantic's serializer and comparison, for which it would build models: most options are unset.
    defaults = vars(StoredOptions.model_construct()) | vars(OwnOptions.model_construct())
    record = {
        wire_name(name): _encoded(value)
        for name, default in defaults.items()
        if (value := stored[name]) is not default and value != default
    }
    content = orjson.dumps(record)
    # Hundreds of clients may join a session, one after another, and change nothing.
    with suppress(OSError):
        if state.read(FILE) == content:
            return
    try:
        state.write(FILE, content)
    except OSError as error:
        log.error("cannot write %s: %s", state.path(FILE), error.strerror or error)


def _encoded(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    if isinstance(value, list):
        return [_encoded(item) for item in cast("list[object]", value)]
    return value


def _split(
    servers: Mapping[str, Any] | None, mask: Callable[[str], str]
) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    if not servers:
        return {}, {}
    # Imported here, because most sessions have no servers.
    from jumpseat.store.session.mcp_servers import split_servers
    from jumpseat_protocol.mcp_servers import McpServerConfig

    return split_servers({name: McpServerConfig.model_validate(value) for name, value in servers.items()}, mask)


def _split_agents(
    settings: SessionSettings, mask: Callable[[str], str]
) -> tuple[list[CustomAgentConfig], dict[str, dict[str, str]]]:
    """Return the custom agents without possible secrets in their servers, and the names of the values left out."""
    agents: list[CustomAgentConfig] = []
    lost: dict[str, dict[str, str]] = {}
    for agent in settings.options.custom_agents:
        missing = settings.lost_agent_servers.get(agent.name, {})
        if agent.mcp_servers:
            servers, more = _split(agent.mcp_servers, mask)
            agent, missing = agent.model_copy(update={"mcp_servers": servers or None}), {**missing, **more}
        agents.append(agent)
        if missing:
            lost[agent.name] = missing
    return agents, lost


def read_options(state: StateFiles) -> tuple[StoredOptions, OwnOptions]:
    """Read the stored options; the result is empty if the file is missing or invalid.

    Raises:
        StoreError: the file has the policy of a host, and cannot be read.
    """
    content = b""
    try:
        content = state.read(FILE) or b"{}"
        values = orjson.loads(content)
        options, own = StoredOptions.model_validate(values), OwnOptions.model_validate(values)
    except (OSError, ValueError, TypeError, ValidationError):
        if b'"hostPolicies"' in content:
            # Without it, the session would be open for what its host forbids.
            raise StoreError(
                f"{state.path(FILE)}: expected the options of a session with a host's policy"
            ) from None
        return StoredOptions.model_construct(), OwnOptions.model_construct()
    for owner in (options, *options.custom_agents):
        if owner.mcp_servers:
            owner.mcp_servers = {
                name: value for name, value in owner.mcp_servers.items() if _usable(state, name, value)
            }
    return options, own


def keep_options(source: StateFiles, target: StateFiles) -> bool:
    """Give a copy of a session the policies of its hosts; return whether the session tracks file changes.

    Raises:
        OSError: the options cannot be written.
        StoreError: the policies cannot be read.
    """
    options, own = read_options(source)
    kept = {
        "enableFileChangeTracking": options.enable_file_change_tracking,
        "hostPolicies": _encoded(own.host_policies),
    }
    if any(kept.values()):
        target.write(FILE, orjson.dumps({name: value for name, value in kept.items() if value}))
    return options.enable_file_change_tracking


def _usable(state: StateFiles, name: str, server: dict[str, Any]) -> bool:
    """Return whether a stored server is valid; somebody may have edited the file."""
    from jumpseat_protocol.mcp_servers import McpServerConfig

    try:
        McpServerConfig.model_validate(server)
    except ValidationError:
        log.warning("%s: the MCP server %r is invalid", state.path(FILE), name)
        return False
    return True
