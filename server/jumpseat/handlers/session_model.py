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
    if params.model_capabilities is not None or params.reasoning_summary is not None:
        settings.model_capabilities = params.model_capabilities or settings.model_capabilities
        settings.reasoning_summary = params.reasoning_summary or settings.reasoning_summary
        ctx.registry.keep_options(session)
    session.use_model(params.model_id, params.source or "sdk", reasoning_effort=params.reasoning_effort)
    return CurrentModelResult(model_id=params.model_id, reasoning_effort=settings.reasoning_effort)
