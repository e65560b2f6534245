"""The models that a session can switch to."""

from __future__ import annotations

from jumpseat.agent.model import ModelInfo
from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import ConfigError, ProviderError
from jumpseat.sessions.context import Parts


async def session_models(ctx: Parts, settings: SessionSettings, *, refresh: bool = False) -> list[ModelInfo]:
    """Return the models of the session's own providers, and those of the server if it has no default provider.

    ``refresh`` bypasses the cached lists of the server's providers.

    Raises:
        ConfigError: there are no models.
        ProviderError: the models cannot be listed.
    """
    own = await ctx.models.of_session(settings)
    if settings.provider is not None:
        return own
    try:
        return own + await ctx.models.catalogue.list(settings.login, refresh=refresh)
    except (ConfigError, ProviderError):
        if not own:
            raise
        return own
