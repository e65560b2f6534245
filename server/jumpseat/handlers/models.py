"""``models.*``: the models of all configured providers, and the unit of their prices."""

from __future__ import annotations

from typing import Any

from jumpseat.agent.model import CREDITS_PER_DOLLAR, ModelInfo
from jumpseat.errors import InvalidRequestError
from jumpseat.sessions.context import Context
from jumpseat_protocol.server import ModelsListParams, ModelsListResult
from jumpseat_protocol.state import TokenPriceUnit, TokenPriceUnitsResult


async def list_models(ctx: Context, params: ModelsListParams) -> ModelsListResult:
    """All models a session can name, or one with the given token could."""
    return ModelsListResult(models=[model_to_wire(info) for info in await _requested_models(ctx, params)])


async def list_token_price_units(ctx: Context, params: ModelsListParams) -> TokenPriceUnitsResult:
    """The same unit for all, of which a hundred are a dollar."""
    priced = [info.id for info in await _requested_models(ctx, params) if info.price is not None]
    return TokenPriceUnitsResult(units=[TokenPriceUnit(model_id=one, unit="ai_credits") for one in priced])


async def _requested_models(ctx: Context, params: ModelsListParams) -> list[ModelInfo]:
    """The models that ``params`` ask for.

    Raises:
        InvalidRequestError: they are to be those of an account that nobody has told of.
    """
    if params.selection_id is not None:
        raise InvalidRequestError("selectionId: this server keeps no list of accounts")
    login = ctx.models.copilot.login_with_token(params.git_hub_token) if params.git_hub_token else None
    return await ctx.models.catalogue.list(login)


def model_to_wire(info: ModelInfo) -> dict[str, Any]:
    """A model in the Copilot form; what is unknown is left out, but for the context window, which clients need."""
    limits = {
        "max_context_window_tokens": info.window,
        "max_prompt_tokens": info.max_prompt_tokens,
        "max_output_tokens": info.max_output_tokens,
    }
    # As the Copilot API names the first; the SDKs read neither yet.
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
    # No request of a plan is taken where nobody says so; old SDKs refuse a model that does not tell.
    return {"multiplier": info.multiplier or 0, "tokenPrices": {**amounts, "batchSize": 1_000_000}}
