"""``session.provider.getEndpoint``: hands out credentials, so the operator must have allowed it."""

from __future__ import annotations

from dataclasses import replace

from jumpseat.handlers.context import Context
from jumpseat_protocol.provider import ProviderEndpointParams, ProviderEndpointResult


async def get_endpoint(ctx: Context, params: ProviderEndpointParams) -> ProviderEndpointResult:
    """Where and as whom the session's model, or another one, is called."""
    settings = ctx.registry.live(params.session_id).settings
    if params.model_id is not None:
        settings = replace(settings, model=params.model_id)
    return await ctx.models.endpoint(settings)
