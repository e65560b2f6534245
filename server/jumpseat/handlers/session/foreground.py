"""``session.getForeground`` and ``session.setForeground``: not available, since this server has no UI."""

from __future__ import annotations

from jumpseat.sessions.context import Context
from jumpseat_protocol.server import EmptyParams, SuccessResult
from jumpseat_protocol.sessions import ForegroundResult, SessionParams


def get_foreground(ctx: Context, params: EmptyParams) -> ForegroundResult:
    """Return no session."""
    return ForegroundResult()


def set_foreground(ctx: Context, params: SessionParams) -> SuccessResult:
    """Refuse, with the message that the SDKs look for."""
    return SuccessResult(success=False, error="Not running in TUI+server mode")
