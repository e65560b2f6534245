"""``mcp.*``: the MCP servers that a session in a folder would find, and those that the user has configured."""

from __future__ import annotations

from pathlib import Path

from jumpseat.agent.settings import SessionSettings
from jumpseat.mcp.catalogue import check_server
from jumpseat.sessions.context import Context
from jumpseat.system.file_trees import existing_folder
from jumpseat_protocol.mcp import (
    McpBuiltinNamesResult,
    McpConfigListResult,
    McpConfigParams,
    McpDiscovered,
    McpDiscoverParams,
    McpDiscoverResult,
    McpNameParams,
    McpNamesParams,
)
from jumpseat_protocol.server import EmptyParams


def discover(ctx: Context, params: McpDiscoverParams) -> McpDiscoverResult:
    """Return the MCP servers that a session in the folder would have. No server is started."""
    given = params.working_directory
    folder = existing_folder("workingDirectory", given) if given else Path.cwd()
    found = ctx.mcp.find(SessionSettings.of(folder, enable_config_discovery=True))
    return McpDiscoverResult(
        servers=[
            McpDiscovered(
                name=entry.name,
                type=transport,
                source=entry.source,
                source_plugin=entry.plugin,
                enabled=entry.enabled,
            )
            for entry in found.values()
            # Every session has the built-in ones, in whichever folder.
            if entry.config is not None and entry.source not in (None, "builtin")
            # Only an editor serves servers itself.
            if (transport := entry.config.transport) != "acp"
        ]
    )


def list_builtin_server_names(ctx: Context, params: EmptyParams) -> McpBuiltinNamesResult:
    """Return the MCP servers that every session has, enabled or not."""
    return McpBuiltinNamesResult(names=[*ctx.mcp.builtin(SessionSettings(cwd=Path.cwd()))])


def config_list(ctx: Context, params: EmptyParams) -> McpConfigListResult:
    """Return the servers of ``mcp-config.json``, without those that the operator has set in ``config.toml``."""
    servers = ctx.process.mcp_config.servers()
    return McpConfigListResult(servers={name: value for name, value in servers.items() if isinstance(value, dict)})


def config_add(ctx: Context, params: McpConfigParams) -> None:
    """Add a server.

    Raises:
        InvalidRequestError: the configuration is invalid, or there is a server of that name.
    """
    ctx.process.mcp_config.add(params.name, check_server(params.name, params.config).wire(), replace=False)


def config_update(ctx: Context, params: McpConfigParams) -> None:
    """Replace the configuration of a server.

    Raises:
        InvalidRequestError: the configuration is invalid, or there is no server of that name.
    """
    ctx.process.mcp_config.add(params.name, check_server(params.name, params.config).wire(), replace=True)


def config_remove(ctx: Context, params: McpNameParams) -> None:
    """Remove a server."""
    ctx.process.mcp_config.remove(params.name)


def config_enable(ctx: Context, params: McpNamesParams) -> None:
    """Enable servers in new sessions."""
    ctx.process.mcp_config.switch(params.names, on=True)


def config_disable(ctx: Context, params: McpNamesParams) -> None:
    """Disable servers in new sessions."""
    ctx.process.mcp_config.switch(params.names, on=False)
