"""``session.model.setReasoningEffort`` and ``session.model.list``."""

from __future__ import annotations

from jumpseat.handlers.context import Context
from jumpseat.handlers.models_list import models_for, to_wire
from jumpseat_protocol.events import SessionModelChange
from jumpseat_protocol.state import (
    ReasoningEffortParams,
    ReasoningEffortResult,
    SessionModelsParams,
    SessionModelsResult,
)


async def set_reasoning_effort(ctx: Context, params: ReasoningEffortParams) -> ReasoningEffortResult:
    """Think more, or less, from the next model call on. Levels are the providers' words and not checked here."""
    session = ctx.registry.live(params.session_id)
    settings = session.settings
    settings.reasoning_effort = params.reasoning_effort
    model = settings.model or await ctx.models.default_name(settings)
    if model is not None:
        session.emit(
            SessionModelChange(
                new_model=model, previous_model=model, reasoning_effort=params.reasoning_effort, source="sdk"
            )
        )
    return ReasoningEffortResult(reasoning_effort=params.reasoning_effort)


async def list_models(ctx: Context, params: SessionModelsParams) -> SessionModelsResult:
    """What the session can switch to: the models it brings, and without a provider of its own the server's."""
    found = await models_for(ctx, ctx.registry.live(params.session_id).settings, refresh=params.skip_cache)
    return SessionModelsResult(list=[to_wire(info) for info in found])
