"""``session.model.getCurrent`` and ``session.model.switchTo``."""

from __future__ import annotations

from jumpseat.handlers.context import Context
from jumpseat_protocol.sessions import CurrentModelResult, ModelSwitchParams, SessionParams


async def get_current(ctx: Context, params: SessionParams) -> CurrentModelResult:
    """The model the next call goes to."""
    settings = ctx.registry.live(params.session_id).settings
    model = settings.model or await ctx.models.default_name(settings)
    return CurrentModelResult(model_id=model, reasoning_effort=settings.reasoning_effort)


def switch_to(ctx: Context, params: ModelSwitchParams) -> CurrentModelResult:
    """Use another model from the next call on. Names that are in no list are accepted: lists are incomplete."""
    session = ctx.registry.live(params.session_id)
    settings = session.settings
    settings.model_capabilities = params.model_capabilities or settings.model_capabilities
    session.switch_model(params.model_id, params.reasoning_effort, source=params.source or "sdk")
    return CurrentModelResult(model_id=params.model_id, reasoning_effort=settings.reasoning_effort)
