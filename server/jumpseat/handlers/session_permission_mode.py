"""``session.permissions.getMode`` and ``setMode``: whether calls are asked about at all.

SDK 1.0.6 calls them ``getAllowAll`` and ``setAllowAll``.
"""

from __future__ import annotations

from jumpseat.agent.session import Session
from jumpseat.errors import UnsupportedError
from jumpseat.handlers.context import Context
from jumpseat_protocol.events import SessionPermissionsChanged
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
    """``allow-all`` where every call is approved beforehand."""
    approve_all = ctx.registry.live(params.session_id).permissions.approve_all
    return PermissionModeResult(mode="allow-all" if approve_all else "manual")


def set_mode(ctx: Context, params: PermissionModeParams) -> PermissionModeSetResult:
    """Change it for as long as the session is live: a resumed one asks again."""
    session = ctx.registry.live(params.session_id)
    if params.mode == "assisted":
        raise UnsupportedError("session.permissions.setMode with mode 'assisted'")
    _allow_all(session, params.mode == "allow-all")
    return PermissionModeSetResult(mode=params.mode)


def get_allow_all(ctx: Context, params: SessionParams) -> AllowAllResult:
    """The older name of ``getMode``."""
    enabled = ctx.registry.live(params.session_id).permissions.approve_all
    return AllowAllResult(enabled=enabled, mode="on" if enabled else "off")


def set_allow_all(ctx: Context, params: AllowAllParams) -> AllowAllSetResult:
    """The older name of ``setMode``."""
    session = ctx.registry.live(params.session_id)
    if params.mode == "auto":
        raise UnsupportedError("session.permissions.setAllowAll with mode 'auto'")
    enabled = params.mode == "on" if params.mode else params.enabled
    _allow_all(session, enabled)
    return AllowAllSetResult(enabled=enabled, mode="on" if enabled else "off")


def _allow_all(session: Session, enabled: bool) -> None:
    previous, session.permissions.approve_all = session.permissions.approve_all, enabled
    if enabled != previous:
        session.emit(
            SessionPermissionsChanged(
                mode="allow-all" if enabled else "manual",
                previous_mode="allow-all" if previous else "manual",
                allow_all_permissions=enabled,
                previous_allow_all_permissions=previous,
            )
        )
