"""``session.mcp.*``: the MCP servers of a session."""

from __future__ import annotations

import anyio

from jumpseat.errors import JumpseatError
from jumpseat.mcp.catalogue import check_server
from jumpseat.sessions.context import Context
from jumpseat.sessions.mcp_requests import mcp_host
from jumpseat.sessions.mcp_servers import enable_server, listed_servers
from jumpseat.sessions.sampling import sample
from jumpseat_protocol.mcp import (
    McpCancelSamplingResult,
    McpEnvModeParams,
    McpEnvModeResult,
    McpMovedResult,
    McpRemovedResult,
    McpRequestParams,
    McpRunningResult,
    McpSamplingParams,
    McpSamplingResult,
    McpServerConfig,
    McpServerParams,
    McpServersResult,
    McpStartParams,
    McpToolInfo,
    McpToolsResult,
)
from jumpseat_protocol.sessions import SessionParams


def list_servers(ctx: Context, params: SessionParams) -> McpServersResult:
    """Return all servers of the session, in the order in which their tools are offered."""
    return McpServersResult(servers=listed_servers(ctx, ctx.registry.live(params.session_id)))


def list_tools(ctx: Context, params: McpServerParams) -> McpToolsResult:
    """Return the enabled tools of a server, by the server's own names for them."""
    connection = mcp_host(
        ctx, params.session_id, f"MCP server {params.server_name!r} is not connected"
    ).connection_to(params.server_name)
    return McpToolsResult(
        tools=[McpToolInfo(name=tool.name, description=tool.description) for tool in connection.tools]
    )


def is_server_running(ctx: Context, params: McpServerParams) -> McpRunningResult:
    """Return whether a server is connected."""
    host = ctx.mcp.get(ctx.registry.live(params.session_id))
    return McpRunningResult(running=host is not None and host.running(params.server_name))


async def start_server(ctx: Context, params: McpStartParams) -> None:
    """Start a server, with ``config`` in place of its configuration if given. Its status tells the outcome."""
    host = ctx.mcp.get_or_create(ctx.registry.live(params.session_id))
    await host.start(params.server_name, _config(params))


async def restart_server(ctx: Context, params: McpStartParams) -> None:
    """Restart the server, with ``config`` in place of its configuration if given."""
    host, config = ctx.mcp.get_or_create(ctx.registry.live(params.session_id)), _config(params)
    if host.entry(params.server_name) is not None:
        await host.stop(params.server_name)
    await host.start(params.server_name, config)


async def stop_server(ctx: Context, params: McpServerParams) -> None:
    """Stop a server, and offer its tools no longer."""
    await mcp_host(ctx, params.session_id, "No MCP host initialized").stop(params.server_name)


async def enable(ctx: Context, params: McpServerParams) -> None:
    """Start a disabled server. Does nothing if it is running."""
    session = ctx.registry.live(params.session_id)
    await enable_server(ctx, session, params.server_name, "No MCP host initialized")


async def disable(ctx: Context, params: McpServerParams) -> None:
    """Stop a server in this session until it is enabled again."""
    await mcp_host(ctx, params.session_id, "No MCP host initialized").stop(params.server_name)


def remove_git_hub(ctx: Context, params: SessionParams) -> McpRemovedResult:
    """Take GitHub's own server from the session, whose client has configured it."""
    session = ctx.registry.live(params.session_id)
    if session.settings.options.github_mcp_tool_config is None:
        return McpRemovedResult(removed=False)
    session.settings.set_options(github_mcp_tool_config=None)
    ctx.registry.store_options(session)
    ctx.mcp.begin(session)
    return McpRemovedResult(removed=True)


async def reload(ctx: Context, params: SessionParams) -> None:
    """Read the configuration again, and start failed servers again."""
    host = mcp_host(ctx, params.session_id, "MCP config reload not available")
    failed = [server.name for server in host.servers() if server.status == "failed"]
    host.begin()
    for name in failed:
        if any(server.name == name and server.status == "failed" for server in host.servers()):
            await host.start(name)


def move_loading_to_background(ctx: Context, params: SessionParams) -> McpMovedResult:
    """Let the first turn begin before the servers have started."""
    host = ctx.mcp.get(ctx.registry.live(params.session_id))
    return McpMovedResult(moved_to_background=host is not None and host.stop_waiting())


def set_env_value_mode(ctx: Context, params: McpEnvModeParams) -> McpEnvModeResult:
    """Set how ``env`` of the session's own servers is interpreted, from their next start on."""
    ctx.mcp.get_or_create(ctx.registry.live(params.session_id)).env_mode = params.mode
    return McpEnvModeResult(mode=params.mode)


async def execute_sampling(ctx: Context, params: McpSamplingParams) -> McpSamplingResult:
    """Run a server's sampling request with the session's model, and return the response to the client.

    The call is the client's permission, so the request must be open. The server gets no answer from it.
    """
    session = ctx.registry.live(params.session_id)
    host = ctx.mcp.get(session)
    questions = host.questions if host else None
    open_requests = questions.samplings.open() if questions else []
    requested = (params.server_name, params.mcp_request_id)
    if host is None or all(
        (request.question.server, request.question.mcp_request_id) != requested for request in open_requests
    ):
        return McpSamplingResult(action="failure", error="There is no such sampling request.")
    if params.request_id in host.sampling_runs:
        return McpSamplingResult(action="failure", error="This sampling request is already running.")
    with anyio.CancelScope() as scope:
        host.sampling_runs[params.request_id] = scope
        try:
            return McpSamplingResult(action="success", result=await sample(session, params.request))
        except JumpseatError as error:
            return McpSamplingResult(action="failure", error=f"The sampling request failed: {error}")
        finally:
            del host.sampling_runs[params.request_id]
    return McpSamplingResult(action="cancelled")


def cancel_sampling_execution(ctx: Context, params: McpRequestParams) -> McpCancelSamplingResult:
    host = ctx.mcp.get(ctx.registry.live(params.session_id))
    scope = host.sampling_runs.get(params.request_id) if host else None
    if scope is not None:
        scope.cancel()
    return McpCancelSamplingResult(cancelled=scope is not None)


def _config(params: McpStartParams) -> McpServerConfig | None:
    return None if params.config is None else check_server(params.server_name, params.config)
