"""``mcp/message`` (unstable): notifications of the MCP servers that the editor serves itself."""

from __future__ import annotations

from jumpseat.acp.editor.context import AcpContext
from jumpseat.acp.translation.params import McpNotificationParams


def notify(ctx: AcpContext, params: McpNotificationParams) -> None:
    """Pass a notification on to the request that it belongs to."""
    ctx.editor.mcp.notify(params)
