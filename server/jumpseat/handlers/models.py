"""``models.*``: the models of all configured providers, and the unit of their prices."""

from __future__ import annotations

from typing import Any

import anyio.to_thread

from jumpseat.agent.model import CREDITS_PER_DOLLAR, ModelInfo
from jumpseat.errors import InvalidRequestError
from jumpseat.sessions.context import Context
from jumpseat_protocol.models import (
    BuiltInCatalogResult,
    BuiltInModel,
    ModelsListParams,
    ModelsListResult,
    TokenPriceUnit,
    TokenPriceUnitsResult,
)
from jumpseat_protocol.server import EmptyParams


async def list_(ctx: Context, params: ModelsListParams) -> ModelsListResult:
    """Return all models that a session can name; with a token, those that its account can use."""
    return ModelsListResult(models=[model_to_wire(info) for info in await _requested_models(ctx, params)])


async def list_token_price_units(ctx: Context, params: ModelsListParams) -> TokenPriceUnitsResult:
    """Return the unit of the prices of each priced model: always AI credits, a hundredth of a dollar."""
    priced = [info.id for info in await _requested_models(ctx, params) if info.price is not None]
    return TokenPriceUnitsResult(
        units=[TokenPriceUnit(model_id=model_id, unit="ai_credits") for model_id in priced]
    )


async def get_built_in_catalog(ctx: Context, params: EmptyParams) -> BuiltInCatalogResult:
    """Return the models that the server has facts about, whether a provider for them is configured or not."""
    names = await anyio.to_thread.run_sync(ctx.models.catalogue.known_names)
    return BuiltInCatalogResult(models=[BuiltInModel(id=name) for name in names])


async def _requested_models(ctx: Context, params: ModelsListParams) -> list[ModelInfo]:
    """Return the models that ``params`` select.

    Raises:
        InvalidRequestError: the account is given as ``selectionId``.
    """
    if params.selection_id is not None:
        raise InvalidRequestError("selectionId is not supported: the server has no list of accounts")
    login = ctx.models.copilot.login_with_token(params.git_hub_token) if params.git_hub_token else None
    return await ctx.models.catalogue.list(login)


def model_to_wire(info: ModelInfo) -> dict[str, Any]:
    """Describe a model as the Copilot API does.

    Unknown fields are left out, except the context window, which clients need.
    """
    limits = {
        "max_context_window_tokens": info.window,
        "max_prompt_tokens": info.max_prompt_tokens,
        "max_output_tokens": info.max_output_tokens,
    }
    # `tool_calls` is the name that the Copilot API uses. The SDKs read neither field.
    abilities = {"tool_calls": info.tools, "reasoning": info.reasoning}
    model: dict[str, Any] = {
        "id": info.id,
        "name": info.name or info.id,
        "capabilities": {
            "supports": {
                "vision": bool(info.vision),
                "reasoningEffort": bool(info.reasoning_efforts),
                **{name: value for name, value in abilities.items() if value is not None},
            },
            "limits": {name: value for name, value in limits.items() if value is not None},
        },
        "policy": {"state": "enabled" if info.enabled else "disabled", "terms": ""},
        "billing": _billing(info),
        "supportedReasoningEfforts": list(info.reasoning_efforts) if info.reasoning_efforts else None,
        "defaultReasoningEffort": info.default_reasoning_effort,
    }
    return {name: value for name, value in model.items() if value is not None}


def _billing(info: ModelInfo) -> dict[str, Any] | None:
    if info.price is None:
        return {"multiplier": info.multiplier} if info.multiplier is not None else None
    price = info.price
    prices = {
        "inputPrice": price.input,
        "outputPrice": price.output,
        "cacheReadPrice": price.cache_read,
        "cacheWritePrice": price.cache_write,
    }
    amounts = {name: round(usd * CREDITS_PER_DOLLAR, 6) for name, usd in prices.items() if usd is not None}
    # Old SDKs reject a model without a multiplier; 0 means that it uses no requests of a plan.
    return {"multiplier": info.multiplier or 0, "tokenPrices": {**amounts, "batchSize": 1_000_000}}
