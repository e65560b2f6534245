"""``session.provider.*``: providers that join a session while it lives, and where its model is."""

from __future__ import annotations

from dataclasses import replace

from jumpseat.handlers.models import model_to_wire
from jumpseat.sessions.context import Context
from jumpseat_protocol.provider import (
    ProviderAddParams,
    ProviderAddResult,
    ProviderEndpointParams,
    ProviderEndpointResult,
)


async def add(ctx: Context, params: ProviderAddParams) -> ProviderAddResult:
    """Let the session's models come from more providers; all is added, or nothing.

    Raises:
        InvalidRequestError: a name is taken, or a provider or model cannot work.
    """
    session = ctx.registry.live(params.session_id)
    settings = session.settings
    wanted = replace(
        settings,
        providers=[*settings.providers, *params.providers],
        provider_models=[*settings.provider_models, *params.models],
    )
    ctx.models.check(wanted)
    settings.providers, settings.provider_models = wanted.providers, wanted.provider_models
    if any(one.has_bearer_token_provider for one in params.providers):
        session.clients.ask_for_tokens(ctx.connection)
    found = await ctx.models.of_session(replace(settings, provider=None, provider_models=params.models))
    return ProviderAddResult(models=[model_to_wire(info) for info in found])


async def get_endpoint(ctx: Context, params: ProviderEndpointParams) -> ProviderEndpointResult:
    """Where and as whom the session's model is called. Hands out credentials: the operator must have allowed it."""
    return await ctx.models.endpoint(ctx.registry.live(params.session_id).settings, params.model_id)
