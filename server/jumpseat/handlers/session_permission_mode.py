"""``session.permissions.getMode`` and ``setMode``: whether calls are asked about at all."""

from __future__ import annotations

from jumpseat.errors import UnsupportedError
from jumpseat.handlers.context import Context
from jumpseat_protocol.events import SessionPermissionsChanged
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.state import PermissionModeParams, PermissionModeResult, PermissionModeSetResult


def get_mode(ctx: Context, params: SessionParams) -> PermissionModeResult:
    """``allow-all`` where every call is approved beforehand."""
    approve_all = ctx.registry.live(params.session_id).permissions.approve_all
    return PermissionModeResult(mode="allow-all" if approve_all else "manual")


def set_mode(ctx: Context, params: PermissionModeParams) -> PermissionModeSetResult:
    """Change it for as long as the session is live: a resumed one asks again."""
    session = ctx.registry.live(params.session_id)
    if params.mode == "assisted":
        raise UnsupportedError("session.permissions.setMode with mode 'assisted'")
    previous = "allow-all" if session.permissions.approve_all else "manual"
    session.permissions.approve_all = params.mode == "allow-all"
    if params.mode != previous:
        session.emit(SessionPermissionsChanged(mode=params.mode, previous_mode=previous))
    return PermissionModeSetResult(mode=params.mode)
