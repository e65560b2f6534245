"""``session.mcp.prompts.*``: the prompts of a session's MCP servers."""

from __future__ import annotations

from typing import Any

from jumpseat.sessions.context import Context
from jumpseat.sessions.mcp_requests import loaded_mcp_host, page_params, request_mcp_server
from jumpseat_protocol.mcp import McpPageParams, McpPromptParams, McpPromptsResult


async def list_prompts(ctx: Context, params: McpPageParams) -> McpPromptsResult:
    """Return one page of a server's prompts."""
    host = await loaded_mcp_host(ctx, params.session_id, params.server_name)
    import mcp.types as types

    request = types.ListPromptsRequest(params=page_params(params.cursor))
    result = await request_mcp_server(host, params.server_name, request, types.ListPromptsResult)
    return McpPromptsResult.model_validate(result)


async def get(ctx: Context, params: McpPromptParams) -> dict[str, Any]:
    """Return a prompt with its arguments filled in: ``{description?, messages}``."""
    host = await loaded_mcp_host(ctx, params.session_id, params.server_name)
    import mcp.types as types

    prompt = types.GetPromptRequestParams(name=params.name, arguments=params.arguments)
    request = types.GetPromptRequest(params=prompt)
    return await request_mcp_server(host, params.server_name, request, types.GetPromptResult)
