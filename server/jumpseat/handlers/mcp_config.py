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
    """The servers of ``mcp-config.json``; those of ``config.toml`` are the operator's."""
    servers = ctx.process.mcp_config.servers()
    return McpConfigListResult(servers={name: value for name, value in servers.items() if isinstance(value, dict)})


def add(ctx: Context, params: McpConfigParams) -> None:
    ctx.process.mcp_config.add(params.name, check_server(params.name, params.config).wire(), replace=False)


def update(ctx: Context, params: McpConfigParams) -> None:
    ctx.process.mcp_config.add(params.name, check_server(params.name, params.config).wire(), replace=True)


def remove(ctx: Context, params: McpNameParams) -> None:
    ctx.process.mcp_config.remove(params.name)


def enable(ctx: Context, params: McpNamesParams) -> None:
    ctx.process.mcp_config.switch(params.names, on=True)


def disable(ctx: Context, params: McpNamesParams) -> None:
    ctx.process.mcp_config.switch(params.names, on=False)
