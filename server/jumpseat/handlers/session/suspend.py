"""``session.suspend``: stop the work of a session, which stays live."""

from __future__ import annotations

from jumpseat.sessions.context import Context
from jumpseat_protocol.sessions import SessionParams


async def suspend(ctx: Context, params: SessionParams) -> None:
    """Stop the running prompt, withdraw open questions to clients, and flush the log to disk."""
    session = ctx.registry.live(params.session_id)
    await session.abort("user_initiated")
    session.flush()
