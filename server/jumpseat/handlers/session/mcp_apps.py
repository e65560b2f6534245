"""``session.mcp.apps.*``: what user interfaces that servers bring may ask of them, for clients that show such."""

from __future__ import annotations

from typing import Any, Final

from jumpseat.errors import InvalidRequestError
from jumpseat.handlers.session.mcp_resources import read
from jumpseat.mcp.host import McpHost
from jumpseat.sessions.context import Context
from jumpseat.sessions.mcp_requests import mcp_host
from jumpseat_protocol.mcp import (
    McpAppCallParams,
    McpAppCapability,
    McpAppServer,
    McpAppToolsParams,
    McpContentsResult,
    McpDiagnoseResult,
    McpHostContextParams,
    McpHostContextResult,
    McpRawToolsResult,
    McpResourceParams,
    McpServerParams,
)
from jumpseat_protocol.sessions import SessionParams

SAMPLES: Final = 5


async def call_tool(ctx: Context, params: McpAppCallParams) -> dict[str, Any]:
    """Call a tool for a user interface, which may call those of its own server only. The answer is that of MCP."""
    host = _apps(ctx, params.session_id)
    _same(params)
    name = params.server_name
    connection = host.connected(name)
    from jumpseat.mcp.client import CallTimeoutError, RefusedError, ServerGoneError
    from jumpseat.mcp.connection import NotConnectedError
    from jumpseat.mcp.results import as_json

    if all(tool.name != params.tool_name for tool in connection.tools):
        raise InvalidRequestError(f"MCP server {name!r} has no tool {params.tool_name[:200]!r}")
    try:
        return as_json(await connection.call(params.tool_name, params.arguments or {}))
    except NotConnectedError as error:
        raise InvalidRequestError(str(error)) from None
    except RefusedError as error:
        raise InvalidRequestError(f"MCP server {name!r} refused: {error}") from None
    except CallTimeoutError:
        raise InvalidRequestError(f"MCP server {name!r} did not answer in time") from None
    except ServerGoneError:
        raise InvalidRequestError(f"MCP server {name!r} ended before it answered") from None


def list_tools(ctx: Context, params: McpAppToolsParams) -> McpRawToolsResult:
    host = _apps(ctx, params.session_id)
    _same(params)
    connection = host.connected(params.server_name)
    from jumpseat.mcp.results import as_json

    return McpRawToolsResult(tools=[as_json(tool) for tool in connection.tools])


async def read_resource(ctx: Context, params: McpResourceParams) -> McpContentsResult:
    _apps(ctx, params.session_id)
    return await read(ctx, params)


def set_host_context(ctx: Context, params: McpHostContextParams) -> None:
    """Keep what the client tells of how it shows things, while the session lives."""
    ctx.mcp.need(ctx.registry.live(params.session_id)).app_context = params.context


def get_host_context(ctx: Context, params: SessionParams) -> McpHostContextResult:
    host = ctx.mcp.of(ctx.registry.live(params.session_id))
    return McpHostContextResult(context=host.app_context if host else {})


def diagnose(ctx: Context, params: McpServerParams) -> McpDiagnoseResult:
    """Why a server's user interfaces are shown, or not."""
    session = ctx.registry.live(params.session_id)
    host = ctx.mcp.of(session)
    connected = host is not None and host.running(params.server_name)
    tools = host.connected(params.server_name).tools if host is not None and connected else []
    return McpDiagnoseResult(
        capability=McpAppCapability(
            advertised=session.settings.mcp_apps,
            feature_flag_enabled=True,
            session_has_mcp_apps=session.settings.mcp_apps,
        ),
        server=McpAppServer(
            connected=connected,
            tool_count=len(tools),
            tools_with_ui_meta=sum(any(key.startswith("ui") for key in tool.meta or ()) for tool in tools),
            sample_tool_names=[tool.name for tool in tools[:SAMPLES]],
        ),
    )


def _apps(ctx: Context, session_id: str) -> McpHost:
    if not ctx.registry.live(session_id).settings.mcp_apps:
        raise InvalidRequestError("mcp-apps is not available: the session was opened without requestMcpApps")
    return mcp_host(ctx, session_id, "mcp-apps is not available: the session has no MCP servers")


def _same(params: McpAppToolsParams) -> None:
    if params.origin_server_name != params.server_name:
        raise InvalidRequestError("the user interface of a server may use the tools of that server only")
