"""``mcp.config.*``: the MCP servers that the user has configured with a client."""

from __future__ import annotations

from jumpseat.mcp.catalogue import check_server
from jumpseat.sessions.context import Context
from jumpseat_protocol.mcp import (
    McpConfigListResult,
    McpConfigParams,
    McpNameParams,
    McpNamesParams,
)
from jumpseat_protocol.server import EmptyParams


def list_servers(ctx: Context, params: EmptyParams) -> McpConfigListResult:
    """Return the servers of ``mcp-config.json``, without those that the operator has set in ``config.toml``."""
    servers = ctx.process.mcp_config.servers()
    return McpConfigListResult(servers={name: value for name, value in servers.items() if isinstance(value, dict)})


def add(ctx: Context, params: McpConfigParams) -> None:
    """Add a server.

    Raises:
        InvalidRequestError: the configuration is invalid, or there is a server of that name.
    """
    ctx.process.mcp_config.add(params.name, check_server(params.name, params.config).wire(), replace=False)


def update(ctx: Context, params: McpConfigParams) -> None:
    """Replace the configuration of a server.

    Raises:
        InvalidRequestError: the configuration is invalid, or there is no server of that name.
    """
    ctx.process.mcp_config.add(params.name, check_server(params.name, params.config).wire(), replace=True)


def remove(ctx: Context, params: McpNameParams) -> None:
    """Remove a server."""
    ctx.process.mcp_config.remove(params.name)


def enable(ctx: Context, params: McpNamesParams) -> None:
    """Enable servers in new sessions."""
    ctx.process.mcp_config.switch(params.names, on=True)


def disable(ctx: Context, params: McpNamesParams) -> None:
    """Disable servers in new sessions."""
    ctx.process.mcp_config.switch(params.names, on=False)
