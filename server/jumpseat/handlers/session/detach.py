"""``session.detach`` and its older name ``session.destroy``: this connection is done with a session."""

from __future__ import annotations

from jumpseat.sessions.context import Context
from jumpseat_protocol.server import SuccessResult
from jumpseat_protocol.sessions import SessionParams


async def detach(ctx: Context, params: SessionParams) -> SuccessResult:
    """Leave a session; its files stay. Succeeds for unknown ids too: SDKs call it twice."""
    await ctx.registry.leave(params.session_id, ctx.connection)
    return SuccessResult()
