"""``session.provider.*``: additional providers of a session, and the endpoint of its model."""

from __future__ import annotations

from jumpseat.handlers.models import model_to_wire
from jumpseat.sessions.context import Context
from jumpseat_protocol.provider import (
    ProviderAddParams,
    ProviderAddResult,
    ProviderEndpointParams,
    ProviderEndpointResult,
)


async def add(ctx: Context, params: ProviderAddParams) -> ProviderAddResult:
    """Add providers and models to a session: all of them, or none if one is invalid.

    Raises:
        InvalidRequestError: a name is taken, or a provider or a model is invalid.
    """
    session = ctx.registry.live(params.session_id)
    settings = session.settings
    changed = settings.with_options(
        providers=[*settings.options.providers, *params.providers],
        models=[*settings.options.models, *params.models],
    )
    ctx.models.check(changed)
    settings.adopt(changed)
    if any(provider.has_bearer_token_provider for provider in params.providers):
        session.clients.set_provides_tokens(ctx.connection)
    added = await ctx.models.of_session(settings.with_options(provider=None, models=params.models))
    return ProviderAddResult(models=[model_to_wire(info) for info in added])


async def get_endpoint(ctx: Context, params: ProviderEndpointParams) -> ProviderEndpointResult:
    """Return the endpoint of the session's model with its credentials, if the operator allows that."""
    return await ctx.models.endpoint(ctx.registry.live(params.session_id).settings, params.model_id)
