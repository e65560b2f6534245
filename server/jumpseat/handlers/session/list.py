"""``session.list``: the sessions on the disk."""

from __future__ import annotations

from jumpseat.sessions.context import Context
from jumpseat_protocol.sessions import SessionListParams, SessionListResult
from jumpseat_protocol.wire import Encoded


def list_sessions(ctx: Context, params: SessionListParams) -> Encoded[SessionListResult]:
    """Return the sessions that have had a prompt, last changed first."""
    return Encoded((b'{"sessions":', *ctx.registry.list_json(params.filter), b"}"))
