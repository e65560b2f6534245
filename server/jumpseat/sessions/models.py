"""The models that a session can switch to."""

from __future__ import annotations

from msgspec.structs import replace

from jumpseat.agent.model import ModelInfo
from jumpseat.agent.session.session import Session
from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import ConfigError, InvalidRequestError, ProviderError
from jumpseat.sessions.context import Parts


async def session_models(ctx: Parts, settings: SessionSettings, *, refresh: bool = False) -> list[ModelInfo]:
    """Return the models of the session's own providers, and those of the server if it has no default provider.

    Models that the session may not use are left out.

    ``refresh`` bypasses the cached lists of the server's providers.

    Raises:
        ConfigError: there are no models.
        ProviderError: the models cannot be listed.
    """
    return [info for info in await _all_models(ctx, settings, refresh) if settings.allows(info.id)]


def check_allowed(settings: SessionSettings, model: str) -> None:
    """Check that a session may switch to ``model``.

    Raises:
        InvalidRequestError: it may not.
    """
    if not settings.allows(model):
        allowed = ", ".join(map(repr, settings.allowed_models or ()))
        raise InvalidRequestError(f"the session may not use the model {model!r}; its allowed models: {allowed}")


async def allow_models(ctx: Parts, session: Session, allowed: list[str]) -> None:
    """Limit a live session to ``allowed`` models; it switches to the first available one if it uses another.

    Raises:
        InvalidRequestError: no model is allowed, or the session would have to switch and none is available.
        ConfigError: there are no models to switch to.
        ProviderError: the models cannot be listed.
    """
    if not allowed:
        raise InvalidRequestError("allowedModels: expected at least one model; null lifts the limit")
    settings = session.settings
    current = settings.options.model or await ctx.models.default_name(settings)
    if current not in allowed:
        available = {info.id for info in await session_models(ctx, replace(settings, allowed_models=None))}
        fallback = next((model for model in allowed if model in available), None)
        if fallback is None:
            raise InvalidRequestError("allowedModels: the session has none of these models")
        session.use_model(fallback, "sdk", cause="allowed_models")
    settings.allowed_models = allowed


async def _all_models(ctx: Parts, settings: SessionSettings, refresh: bool) -> list[ModelInfo]:
    own = await ctx.models.of_session(settings)
    if settings.options.provider is not None:
        return own
    try:
        return own + await ctx.models.catalogue.list(settings.login, refresh=refresh)
    except (ConfigError, ProviderError):
        if not own:
            raise
        return own
