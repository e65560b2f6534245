"""``models.list``: the models of all configured providers."""

from __future__ import annotations

from typing import Any

from jumpseat.agent.model import ModelInfo
from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import ConfigError, InvalidRequestError, ProviderError
from jumpseat.handlers.context import Context
from jumpseat_protocol.server import ModelsListParams, ModelsListResult

DEFAULT_CONTEXT_WINDOW = 128_000


async def models_list(ctx: Context, params: ModelsListParams) -> ModelsListResult:
    """All models a session can name, or one with the given token could."""
    if params.selection_id is not None:
        raise InvalidRequestError("selectionId: this server keeps no list of accounts")
    login = ctx.models.login_with_token(params.git_hub_token) if params.git_hub_token else None
    return ModelsListResult(models=[to_wire(info) for info in await ctx.models.list(login)])


async def models_for(ctx: Context, settings: SessionSettings, *, refresh: bool = False) -> list[ModelInfo]:
    """The models that a session brings, and without a provider of its own the server's.

    Raises:
        ConfigError: there are none.
        ProviderError: they cannot be listed.
    """
    found = ctx.models.registered(settings)
    if settings.provider is not None:
        name = settings.model or settings.provider.model_id or settings.provider.wire_model
        return [ModelInfo(id=name), *found] if name and all(one.id != name for one in found) else found
    try:
        return found + await ctx.models.list(settings.login, refresh=refresh)
    except (ConfigError, ProviderError):
        if not found:
            raise
        return found


def to_wire(info: ModelInfo) -> dict[str, Any]:
    """A model in the Copilot form; what is unknown is left out, but for the context window, which clients need."""
    limits = {
        "max_context_window_tokens": info.context_window or DEFAULT_CONTEXT_WINDOW,
        "max_prompt_tokens": info.max_prompt_tokens,
        "max_output_tokens": info.max_output_tokens,
    }
    model: dict[str, Any] = {
        "id": info.id,
        "name": info.name or info.id,
        "capabilities": {
            "supports": {"vision": bool(info.vision), "reasoningEffort": bool(info.reasoning_efforts)},
            "limits": {name: value for name, value in limits.items() if value is not None},
        },
        "policy": {"state": "enabled" if info.enabled else "disabled", "terms": ""},
        "billing": {"multiplier": info.multiplier} if info.multiplier is not None else None,
        "supportedReasoningEfforts": list(info.reasoning_efforts) if info.reasoning_efforts else None,
        "defaultReasoningEffort": info.default_reasoning_effort,
    }
    return {name: value for name, value in model.items() if value is not None}
