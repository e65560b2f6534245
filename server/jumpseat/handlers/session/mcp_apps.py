"""``session.mcp.apps.*``: requests of MCP apps, the user interfaces that MCP servers bring."""

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
"""The number of tool names that ``diagnose`` returns."""


async def call_tool(ctx: Context, params: McpAppCallParams) -> dict[str, Any]:
    """Call a tool of an app's own server, and return MCP's ``CallToolResult``."""
    host = _apps_host(ctx, params.session_id)
    _check_origin(params)
    name = params.server_name
    connection = host.connection_to(name)
    from jumpseat.mcp.client import CallTimeoutError, RefusedError, ServerGoneError
    from jumpseat.mcp.failures import NotConnectedError
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
    """Return the tools of an app's own server, as the server describes them."""
    host = _apps_host(ctx, params.session_id)
    _check_origin(params)
    connection = host.connection_to(params.server_name)
    from jumpseat.mcp.results import as_json

    return McpRawToolsResult(tools=[as_json(tool) for tool in connection.tools])


async def read_resource(ctx: Context, params: McpResourceParams) -> McpContentsResult:
    """Return the contents of a server's resource."""
    _apps_host(ctx, params.session_id)
    return await read(ctx, params)


def set_host_context(ctx: Context, params: McpHostContextParams) -> None:
    """Store the client's display context for the life of the session."""
    ctx.mcp.get_or_create(ctx.registry.live(params.session_id)).app_context = params.context


def get_host_context(ctx: Context, params: SessionParams) -> McpHostContextResult:
    """Return the display context that a client has stored."""
    host = ctx.mcp.get(ctx.registry.live(params.session_id))
    return McpHostContextResult(context=host.app_context if host else {})


def diagnose(ctx: Context, params: McpServerParams) -> McpDiagnoseResult:
    """Return the facts that decide whether a server's apps are shown."""
    session = ctx.registry.live(params.session_id)
    host = ctx.mcp.get(session)
    connected = host is not None and host.running(params.server_name)
    tools = host.connection_to(params.server_name).tools if host is not None and connected else []
    return McpDiagnoseResult(
        capability=McpAppCapability(
            advertised=session.settings.options.request_mcp_apps,
            feature_flag_enabled=True,
            session_has_mcp_apps=session.settings.options.request_mcp_apps,
        ),
        server=McpAppServer(
            connected=connected,
            tool_count=len(tools),
            tools_with_ui_meta=sum(any(key.startswith("ui") for key in tool.meta or ()) for tool in tools),
            sample_tool_names=[tool.name for tool in tools[:SAMPLES]],
        ),
    )


def _apps_host(ctx: Context, session_id: str) -> McpHost:
    if not ctx.registry.live(session_id).settings.options.request_mcp_apps:
        raise InvalidRequestError("mcp-apps is not available: the session was opened without requestMcpApps")
    return mcp_host(ctx, session_id, "mcp-apps is not available: the session has no MCP servers")


def _check_origin(params: McpAppToolsParams) -> None:
    if params.origin_server_name != params.server_name:
        raise InvalidRequestError(
            "originServerName must equal serverName: an app may only use the tools of its own server"
        )
