"""``session.mcp.oauth.*``: logins at MCP servers."""

from __future__ import annotations

from jumpseat.sessions.context import Context
from jumpseat.sessions.mcp_requests import mcp_host
from jumpseat_protocol.mcp import (
    HandlePendingOauthParams,
    McpAuthChangedParams,
    McpOauthLoginParams,
    McpOauthLoginResult,
    McpProbeResult,
    McpServerParams,
)
from jumpseat_protocol.server import SuccessResult


def handle_pending_request(ctx: Context, params: HandlePendingOauthParams) -> SuccessResult:
    """Answer a server's request for a token. Only the first answer counts; others get ``success: false``."""
    host = ctx.mcp.get(ctx.registry.live(params.session_id))
    return SuccessResult(
        success=host is not None and host.credentials.oauth.answer(params.request_id, params.result)
    )


def authentication_state_changed(ctx: Context, params: McpAuthChangedParams) -> None:
    """Reconnect to servers that failed because they had no token: to all, or to the named one."""
    if (host := ctx.mcp.get(ctx.registry.live(params.session_id))) is not None:
        host.retry_auth(params.server_name)


async def login(ctx: Context, params: McpOauthLoginParams) -> McpOauthLoginResult:
    """Start a login. The user opens the returned URL; this process receives the result on a loopback port.

    Raises:
        InvalidRequestError: the server does not support logins.
    """
    host = mcp_host(ctx, params.session_id, "MCP host is not available")
    return McpOauthLoginResult(
        authorization_url=await host.login(
            params.server_name,
            again=params.force_reauth,
            client_name=params.client_name,
            client_id=params.client_id,
            client_secret=params.client_secret,
            success=params.callback_success_message,
        )
    )


async def probe(ctx: Context, params: McpServerParams) -> McpProbeResult:
    """Check whether a server requires a login, without starting one.

    Raises:
        InvalidRequestError: the server does not support logins.
    """
    return await mcp_host(ctx, params.session_id, "MCP host is not available").probe(params.server_name)
