"""``mcp.*``: the MCP servers that a session in a folder would find."""

from __future__ import annotations

from pathlib import Path

from jumpseat.agent.settings import SessionSettings
from jumpseat.sessions.context import Context
from jumpseat.system.working_directory import existing_folder
from jumpseat_protocol.mcp import (
    McpBuiltinNamesResult,
    McpDiscovered,
    McpDiscoverParams,
    McpDiscoverResult,
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
                type=entry.config.transport,
                source=entry.source,
                source_plugin=entry.plugin,
                enabled=entry.enabled,
            )
            for entry in found.values()
            # Every session has the built-in ones, in whichever folder.
            if entry.config is not None and entry.source not in (None, "builtin")
        ]
    )


def list_builtin_server_names(ctx: Context, params: EmptyParams) -> McpBuiltinNamesResult:
    """Return the MCP servers that every session has, enabled or not."""
    return McpBuiltinNamesResult(names=[*ctx.mcp.builtin(SessionSettings(cwd=Path.cwd()))])
