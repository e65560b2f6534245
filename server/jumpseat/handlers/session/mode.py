"""``session.mode.*``: the mode of a session."""

from __future__ import annotations

from jumpseat.sessions.context import Context
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.state import ModeSetParams, ModeSetResult


def get(ctx: Context, params: SessionParams) -> str:
    """Return the mode, as a plain string."""
    return ctx.registry.live(params.session_id).settings.mode


def set_(ctx: Context, params: ModeSetParams) -> ModeSetResult:
    """Change the mode, unless the client expects another one. A change is emitted as a persisted event."""
    session = ctx.registry.live(params.session_id)
    if params.expected_mode not in (None, session.settings.mode):
        return ModeSetResult(status="unchanged", mode_applied=False)
    session.change_mode(params.mode)
    return ModeSetResult()
