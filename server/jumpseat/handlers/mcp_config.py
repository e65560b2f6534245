"""``mcp.config.*`` and ``mcp.discover``: the servers that a user has set up, for all sessions that begin."""

from __future__ import annotations

from pathlib import Path

from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import InvalidRequestError
from jumpseat.handlers.context import Context
from jumpseat.mcp.catalogue import check_server
from jumpseat_protocol.mcp import (
    McpConfigListResult,
    McpConfigParams,
    McpDiscovered,
    McpDiscoverParams,
    McpDiscoverResult,
    McpNameParams,
    McpNamesParams,
)
from jumpseat_protocol.server import EmptyParams


def config_list(ctx: Context, params: EmptyParams) -> McpConfigListResult:
    """The servers of ``mcp-config.json``; those of ``config.toml`` are the operator's."""
    servers = ctx.process.mcp_config.servers()
    return McpConfigListResult(servers={name: value for name, value in servers.items() if isinstance(value, dict)})


def config_add(ctx: Context, params: McpConfigParams) -> None:
    ctx.process.mcp_config.add(params.name, check_server(params.name, params.config).wire(), replace=False)


def config_update(ctx: Context, params: McpConfigParams) -> None:
    ctx.process.mcp_config.add(params.name, check_server(params.name, params.config).wire(), replace=True)


def config_remove(ctx: Context, params: McpNameParams) -> None:
    ctx.process.mcp_config.remove(params.name)


def config_enable(ctx: Context, params: McpNamesParams) -> None:
    ctx.process.mcp_config.switch(params.names, on=True)


def config_disable(ctx: Context, params: McpNamesParams) -> None:
    ctx.process.mcp_config.switch(params.names, on=False)


def discover(ctx: Context, params: McpDiscoverParams) -> McpDiscoverResult:
    """What servers a session in that folder would find; nothing is started."""
    folder = Path(params.working_directory) if params.working_directory else Path.cwd()
    if not folder.is_dir():
        raise InvalidRequestError(f"workingDirectory {params.working_directory!r} is not a directory")
    found = ctx.mcp.find(SessionSettings(cwd=folder.absolute(), config_discovery=True))
    return McpDiscoverResult(
        servers=[
            McpDiscovered(
                name=entry.name,
                type=entry.config.transport,
                source=entry.source,
                source_plugin=entry.plugin,
                enabled=entry.enabled,
            )
            for entry in found.values()
            if entry.config is not None and entry.source is not None
        ]
    )
