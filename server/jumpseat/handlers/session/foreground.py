"""``session.getForeground`` and ``session.setForeground``: a server without a screen has no foreground."""

from __future__ import annotations

from jumpseat.sessions.context import Context
from jumpseat_protocol.server import EmptyParams, SuccessResult
from jumpseat_protocol.sessions import ForegroundResult, SessionParams


def get_foreground(ctx: Context, params: EmptyParams) -> ForegroundResult:
    """No session: nothing is shown anywhere."""
    return ForegroundResult()


def set_foreground(ctx: Context, params: SessionParams) -> SuccessResult:
    """Refused in the words the SDKs look for."""
    return SuccessResult(success=False, error="Not running in TUI+server mode")
