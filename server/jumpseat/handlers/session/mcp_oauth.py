"""``session.mcp.oauth.*``: the tokens of MCP servers."""

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
    """The first answer to a server's wish for a token wins; a late or unknown one is told so."""
    host = ctx.mcp.of(ctx.registry.live(params.session_id))
    return SuccessResult(
        success=host is not None and host.credentials.oauth.answer(params.request_id, params.result)
    )


def authentication_state_changed(ctx: Context, params: McpAuthChangedParams) -> None:
    """Try again what has failed for want of a token."""
    if (host := ctx.mcp.of(ctx.registry.live(params.session_id))) is not None:
        host.retry_auth(params.server_name)


async def login(ctx: Context, params: McpOauthLoginParams) -> McpOauthLoginResult:
    """Begin a login: the user is to open the address, and this process hears by loopback how it ended.

    Raises:
        InvalidRequestError: the server is not one to log in to.
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
    """Find out whether a server wants a login, without asking anybody for one.

    Raises:
        InvalidRequestError: the server is not one to log in to.
    """
    return await mcp_host(ctx, params.session_id, "MCP host is not available").probe(params.server_name)
