"""``session.detach`` and its older name ``session.destroy``: leave a session."""

from __future__ import annotations

from jumpseat.sessions.context import Context
from jumpseat_protocol.server import SuccessResult
from jumpseat_protocol.sessions import SessionParams


async def detach(ctx: Context, params: SessionParams) -> SuccessResult:
    """Detach this connection from a session, whose files stay. Succeeds for unknown ids: SDKs call it twice."""
    await ctx.registry.detach_and_close(params.session_id, ctx.connection)
    return SuccessResult()
