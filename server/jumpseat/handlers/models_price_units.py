"""``models.listTokenPriceUnits``: in what the prices of models are counted."""

from __future__ import annotations

from jumpseat.handlers.context import Context
from jumpseat.handlers.models_list import found
from jumpseat_protocol.server import ModelsListParams
from jumpseat_protocol.state import TokenPriceUnit, TokenPriceUnitsResult


async def list_units(ctx: Context, params: ModelsListParams) -> TokenPriceUnitsResult:
    """The same unit for all, of which a hundred are a dollar."""
    priced = [info.id for info in await found(ctx, params) if info.price is not None]
    return TokenPriceUnitsResult(units=[TokenPriceUnit(model_id=one, unit="ai_credits") for one in priced])
