"""``session.mcp.headers.*``: headers that a client provides for the requests to an MCP server."""

from __future__ import annotations

from jumpseat.sessions.context import Context
from jumpseat_protocol.mcp import HandlePendingHeadersParams
from jumpseat_protocol.server import SuccessResult


def handle_pending_headers_refresh_request(ctx: Context, params: HandlePendingHeadersParams) -> SuccessResult:
    """Answer a server's request for headers. Only the first answer counts; others get ``success: false``."""
    host = ctx.mcp.get(ctx.registry.live(params.session_id))
    answered = host is not None and host.credentials.headers.answer(params.request_id, params.result)
    return SuccessResult(success=answered)
