"""``session.shutdown``: end a session."""

from __future__ import annotations

from jumpseat.sessions.context import Context
from jumpseat.sessions.ending import shut_down_session
from jumpseat_protocol.state import ShutdownParams


async def shutdown(ctx: Context, params: ShutdownParams) -> None:
    """Stop the session's work, emit its usage and close it. It can be resumed from the disk."""
    session = ctx.registry.live(params.session_id)
    await shut_down_session(ctx.registry, session, params.type, params.reason)
