"""``session.provider.getEndpoint``: hands out credentials, so the operator must have allowed it."""

from __future__ import annotations

from jumpseat.handlers.context import Context
from jumpseat_protocol.provider import ProviderEndpointResult
from jumpseat_protocol.sessions import SessionParams


async def get_endpoint(ctx: Context, params: SessionParams) -> ProviderEndpointResult:
    """Where and as whom the session's model is called."""
    return await ctx.models.endpoint(ctx.registry.live(params.session_id).settings)
