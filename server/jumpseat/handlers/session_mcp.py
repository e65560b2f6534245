"""``session.mcp.*``: the MCP servers of a session."""

from __future__ import annotations

from typing import Any

from jumpseat.errors import InvalidRequestError
from jumpseat.handlers.context import Context
from jumpseat.mcp.catalogue import check_server
from jumpseat.mcp.host import McpHost
from jumpseat_protocol.mcp import (
    McpEnvModeParams,
    McpEnvModeResult,
    McpMovedResult,
    McpRunningResult,
    McpServerConfig,
    McpServerParams,
    McpServersResult,
    McpStartParams,
    McpToolInfo,
    McpToolsResult,
)
from jumpseat_protocol.sessions import SessionParams


def servers_list(ctx: Context, params: SessionParams) -> McpServersResult:
    """All servers of the session, in the order in which their tools are offered."""
    host = ctx.mcp.of(ctx.registry.live(params.session_id))
    return McpServersResult(servers=host.servers() if host else [])


def list_tools(ctx: Context, params: McpServerParams) -> McpToolsResult:
    """The tools of a server that are wanted of it, by its own names for them."""
    connection = host_of(ctx, params.session_id, f"MCP server {params.server_name!r} is not connected").connected(
        params.server_name
    )
    return McpToolsResult(
        tools=[McpToolInfo(name=tool.name, description=tool.description) for tool in connection.tools]
    )


def is_server_running(ctx: Context, params: McpServerParams) -> McpRunningResult:
    host = ctx.mcp.of(ctx.registry.live(params.session_id))
    return McpRunningResult(running=host is not None and host.running(params.server_name))


async def start_server(ctx: Context, params: McpStartParams) -> None:
    """Have a server run, as ``config`` says where it is given; how that goes, its status tells."""
    host = ctx.mcp.need(ctx.registry.live(params.session_id))
    await host.start(params.server_name, _config(params))


async def restart_server(ctx: Context, params: McpStartParams) -> None:
    """End a server where it runs, and have it run."""
    host, config = ctx.mcp.need(ctx.registry.live(params.session_id)), _config(params)
    if host.entry(params.server_name) is not None:
        await host.stop(params.server_name)
    await host.start(params.server_name, config)


async def stop_server(ctx: Context, params: McpServerParams) -> None:
    """End a server; its tools are offered no more."""
    await host_of(ctx, params.session_id, "No MCP host initialized").stop(params.server_name)


async def enable(ctx: Context, params: McpServerParams) -> None:
    """Have a server run that was disabled; one that runs goes on."""
    host = host_of(ctx, params.session_id, "No MCP host initialized")
    if not host.running(params.server_name):
        await host.start(params.server_name)


async def disable(ctx: Context, params: McpServerParams) -> None:
    """End a server for this session, until it is enabled again."""
    await host_of(ctx, params.session_id, "No MCP host initialized").stop(params.server_name)


async def reload(ctx: Context, params: SessionParams) -> None:
    """Look again which servers there are; what has failed is tried again."""
    host = host_of(ctx, params.session_id, "MCP config reload not available")
    failed = [one.name for one in host.servers() if one.status == "failed"]
    host.begin()
    for name in failed:
        if any(one.name == name and one.status == "failed" for one in host.servers()):
            await host.start(name)


def move_loading_to_background(ctx: Context, params: SessionParams) -> McpMovedResult:
    """Let the first turn not wait for servers that are being started."""
    host = ctx.mcp.of(ctx.registry.live(params.session_id))
    return McpMovedResult(moved_to_background=host is not None and host.stop_waiting())


def set_env_value_mode(ctx: Context, params: McpEnvModeParams) -> McpEnvModeResult:
    """What the ``env`` of the session's own servers means, from their next start on."""
    ctx.mcp.need(ctx.registry.live(params.session_id)).env_mode = params.mode
    return McpEnvModeResult(mode=params.mode)


def _config(params: McpStartParams) -> McpServerConfig | None:
    return None if params.config is None else check_server(params.server_name, params.config)


def host_of(ctx: Context, session_id: str, otherwise: str) -> McpHost:
    """The host of a session that has servers.

    Raises:
        InvalidRequestError: it has none; ``otherwise`` is the text.
    """
    host = ctx.mcp.of(ctx.registry.live(session_id))
    if host is None or not host.present:
        raise InvalidRequestError(otherwise)
    return host


async def asked(host: McpHost, server: str, request: Any, result: Any) -> dict[str, Any]:
    """What a server answers, in the form that MCP gives it.

    Raises:
        InvalidRequestError: the server is not connected, or refuses.
    """
    connection = host.connected(server)
    from jumpseat.mcp.client import CallTimeoutError, RefusedError, ServerGoneError
    from jumpseat.mcp.results import as_json

    try:
        return as_json(await connection.ask(request, result))
    except RefusedError as error:
        raise InvalidRequestError(f"MCP server {server!r} refused: {error}") from None
    except CallTimeoutError:
        raise InvalidRequestError(f"MCP server {server!r} did not answer in time") from None
    except ServerGoneError:
        raise InvalidRequestError(f"MCP server {server!r} is not connected: it ended before it answered") from None
