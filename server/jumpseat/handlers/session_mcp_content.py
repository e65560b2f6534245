"""``session.mcp.resources.*`` and ``session.mcp.prompts.*``: what servers have besides tools."""

from __future__ import annotations

from typing import Any

from jumpseat.errors import InvalidRequestError
from jumpseat.handlers.context import Context
from jumpseat.handlers.session_mcp import asked, host_of
from jumpseat.mcp.host import McpHost
from jumpseat.mcp.loading import load
from jumpseat_protocol.mcp import (
    McpContentsResult,
    McpPageParams,
    McpPromptParams,
    McpPromptsResult,
    McpResourceParams,
    McpResourcesResult,
    McpResourceTemplatesResult,
)


async def resources_list(ctx: Context, params: McpPageParams) -> McpResourcesResult:
    host = await _host(ctx, params)
    import mcp.types as types

    request = types.ListResourcesRequest(params=_page(params))
    return McpResourcesResult.model_validate(
        await asked(host, params.server_name, request, types.ListResourcesResult)
    )


async def list_templates(ctx: Context, params: McpPageParams) -> McpResourceTemplatesResult:
    host = await _host(ctx, params)
    import mcp.types as types

    request = types.ListResourceTemplatesRequest(params=_page(params))
    return McpResourceTemplatesResult.model_validate(
        await asked(host, params.server_name, request, types.ListResourceTemplatesResult)
    )


async def resources_read(ctx: Context, params: McpResourceParams) -> McpContentsResult:
    """The server reads; nothing of this machine is read here."""
    host = await _host(ctx, params)
    import mcp.types as types
    from pydantic import ValidationError

    try:
        wanted = types.ReadResourceRequestParams.model_validate({"uri": params.uri})
    except ValidationError:
        raise InvalidRequestError(f"uri: expected a URI, got {params.uri[:200]!r}") from None
    request = types.ReadResourceRequest(params=wanted)
    return McpContentsResult.model_validate(
        await asked(host, params.server_name, request, types.ReadResourceResult)
    )


async def prompts_list(ctx: Context, params: McpPageParams) -> McpPromptsResult:
    host = await _host(ctx, params)
    import mcp.types as types

    request = types.ListPromptsRequest(params=_page(params))
    return McpPromptsResult.model_validate(await asked(host, params.server_name, request, types.ListPromptsResult))


async def prompts_get(ctx: Context, params: McpPromptParams) -> dict[str, Any]:
    """The messages of a prompt, filled in: ``{description?, messages}``."""
    host = await _host(ctx, params)
    import mcp.types as types

    wanted = types.GetPromptRequestParams(name=params.name, arguments=params.arguments)
    return await asked(host, params.server_name, types.GetPromptRequest(params=wanted), types.GetPromptResult)


async def _host(ctx: Context, params: McpPageParams | McpResourceParams | McpPromptParams) -> McpHost:
    """Whom to ask, with the types for it loaded."""
    host = host_of(ctx, params.session_id, f"MCP server {params.server_name!r} is not connected")
    await load()
    return host


def _page(params: McpPageParams) -> Any:
    import mcp.types as types

    return types.PaginatedRequestParams(cursor=params.cursor) if params.cursor else None
