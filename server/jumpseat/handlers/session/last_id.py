"""``session.getLastId``: the session that changed last."""

from __future__ import annotations

from jumpseat.sessions.context import Context
from jumpseat_protocol.server import EmptyParams
from jumpseat_protocol.sessions import (
    SessionIdResult,
)


def get_last_id(ctx: Context, params: EmptyParams) -> SessionIdResult:
    """The one that changed last; nothing on an empty home."""
    return SessionIdResult(session_id=ctx.registry.last_id())
