"""``session.permissions.urls.*``: the hosts that a session may load from."""

from __future__ import annotations

from jumpseat.sessions.context import Context
from jumpseat_protocol.permission_methods import (
    UnrestrictedUrlsParams,
)
from jumpseat_protocol.server import SuccessResult


def set_unrestricted_mode(ctx: Context, params: UnrestrictedUrlsParams) -> SuccessResult:
    """Allow or no longer allow calls to load from any host."""
    ctx.registry.live(params.session_id).permissions.path_scope.any_host = params.enabled
    return SuccessResult()
