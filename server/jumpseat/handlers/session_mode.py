"""``session.mode.get`` and ``session.mode.set``."""

from __future__ import annotations

from jumpseat.handlers.context import Context
from jumpseat_protocol.sessions import ModeSetParams, ModeSetResult, SessionParams


def mode_get(ctx: Context, params: SessionParams) -> str:
    """The bare word."""
    return ctx.registry.live(params.session_id).settings.mode


def mode_set(ctx: Context, params: ModeSetParams) -> ModeSetResult:
    """Change the mode; a change is persisted and announced."""
    ctx.registry.live(params.session_id).change_mode(params.mode)
    return ModeSetResult()
