"""``session.list``: the sessions on the disk."""

from __future__ import annotations

from jumpseat.sessions.context import Context
from jumpseat_protocol.sessions import (
    SessionListParams,
    SessionListResult,
)


def list_sessions(ctx: Context, params: SessionListParams) -> SessionListResult:
    """Return the sessions that have had a prompt, last changed first."""
    return SessionListResult(sessions=ctx.registry.list(params.filter))
