"""``session.getLastId``: the session that changed last."""

from __future__ import annotations

from jumpseat.sessions.context import Context
from jumpseat_protocol.server import EmptyParams
from jumpseat_protocol.sessions import (
    SessionIdResult,
)


def get_last_id(ctx: Context, params: EmptyParams) -> SessionIdResult:
    """Return the id of the session that changed last; no id if there are no sessions."""
    return SessionIdResult(session_id=ctx.registry.last_id())
