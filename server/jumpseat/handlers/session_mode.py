"""``session.mode.get`` and ``session.mode.set``."""

from __future__ import annotations

from jumpseat.handlers.context import Context
from jumpseat_protocol.events import SessionModeChanged
from jumpseat_protocol.sessions import ModeSetParams, ModeSetResult, SessionParams


def mode_get(ctx: Context, params: SessionParams) -> str:
    """The bare word."""
    return ctx.registry.live(params.session_id).settings.mode


def mode_set(ctx: Context, params: ModeSetParams) -> ModeSetResult:
    """Change the mode; a change is persisted and announced."""
    session = ctx.registry.live(params.session_id)
    previous = session.settings.mode
    if params.mode != previous:
        session.settings.mode = params.mode
        session.emit(SessionModeChanged(new_mode=params.mode, previous_mode=previous))
    return ModeSetResult()
