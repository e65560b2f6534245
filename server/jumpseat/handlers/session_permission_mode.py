"""``session.permissions.getMode`` and ``setMode``: who is asked about calls, if anybody.

SDK 1.0.6 calls them ``getAllowAll`` and ``setAllowAll``.
"""

from __future__ import annotations

from jumpseat.errors import UnsupportedError
from jumpseat.handlers.context import Context
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.state import (
    AllowAllParams,
    AllowAllResult,
    AllowAllSetResult,
    PermissionModeParams,
    PermissionModeResult,
    PermissionModeSetResult,
)


def get_mode(ctx: Context, params: SessionParams) -> PermissionModeResult:
    """``allow-all`` where calls are approved beforehand, ``assisted`` where a model judges them first."""
    return PermissionModeResult(mode=ctx.registry.live(params.session_id).permissions.mode)


def set_mode(ctx: Context, params: PermissionModeParams) -> PermissionModeSetResult:
    """Change it for as long as the session is live: a resumed one begins as a new one does."""
    permissions = ctx.registry.live(params.session_id).permissions
    permissions.set_mode(params.mode, params.assisted_approval_model if params.mode == "assisted" else None)
    return PermissionModeSetResult(mode=permissions.mode)


def get_allow_all(ctx: Context, params: SessionParams) -> AllowAllResult:
    """The older name of ``getMode``."""
    enabled = ctx.registry.live(params.session_id).permissions.approve_all
    return AllowAllResult(enabled=enabled, mode="on" if enabled else "off")


def set_allow_all(ctx: Context, params: AllowAllParams) -> AllowAllSetResult:
    """The older name of ``setMode``."""
    permissions = ctx.registry.live(params.session_id).permissions
    if params.mode == "auto":
        raise UnsupportedError("session.permissions.setAllowAll with mode 'auto'")
    enabled = params.mode == "on" if params.mode else params.enabled
    permissions.set_mode("allow-all" if enabled else "manual")
    return AllowAllSetResult(enabled=enabled, mode="on" if enabled else "off")
