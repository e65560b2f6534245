"""``session.mcp.resources.*``: the resources of a session's MCP servers."""

from __future__ import annotations

from jumpseat.errors import InvalidRequestError
from jumpseat.sessions.context import Context
from jumpseat.sessions.mcp_requests import loaded_mcp_host, page_params, request_mcp_server
from jumpseat_protocol.mcp import (
    McpContentsResult,
    McpPageParams,
    McpResourceParams,
    McpResourcesResult,
    McpResourceTemplatesResult,
)


async def list_resources(ctx: Context, params: McpPageParams) -> McpResourcesResult:
    """Return one page of a server's resources."""
    host = await loaded_mcp_host(ctx, params.session_id, params.server_name)
    import mcp.types as types

    request = types.ListResourcesRequest(params=page_params(params.cursor))
    result = await request_mcp_server(host, params.server_name, request, types.ListResourcesResult)
    return McpResourcesResult.model_validate(result)


async def list_templates(ctx: Context, params: McpPageParams) -> McpResourceTemplatesResult:
    """Return one page of a server's resource templates."""
    host = await loaded_mcp_host(ctx, params.session_id, params.server_name)
    import mcp.types as types

    request = types.ListResourceTemplatesRequest(params=page_params(params.cursor))
    result = await request_mcp_server(host, params.server_name, request, types.ListResourceTemplatesResult)
    return McpResourceTemplatesResult.model_validate(result)


async def read(ctx: Context, params: McpResourceParams) -> McpContentsResult:
    """Return the contents of a resource. The MCP server reads it; this process opens no file for it.

    Raises:
        InvalidRequestError: ``uri`` is not a URI, or the server is not connected or refuses.
    """
    host = await loaded_mcp_host(ctx, params.session_id, params.server_name)
    import mcp.types as types
    from pydantic import AnyUrl, ValidationError

    try:
        AnyUrl(params.uri)
    except ValidationError:
        raise InvalidRequestError(f"uri: expected a URI, got {params.uri[:200]!r}") from None
    request = types.ReadResourceRequest(params=types.ReadResourceRequestParams(uri=params.uri))
    unknown = f"resource {params.uri[:200]!r} not found on MCP server {params.server_name!r}"
    result = await request_mcp_server(host, params.server_name, request, types.ReadResourceResult, unknown=unknown)
    return McpContentsResult.model_validate(result)
