"""``session.abort``: stop what runs."""

from __future__ import annotations

from jumpseat.handlers.context import Context
from jumpseat_protocol.server import SuccessResult
from jumpseat_protocol.sessions import SessionAbortParams


async def session_abort(ctx: Context, params: SessionAbortParams) -> SuccessResult:
    """Stop the running prompt and forget the waiting ones. Fine when idle, fine twice."""
    await ctx.registry.live(params.session_id).abort(params.reason or "user_initiated")
    return SuccessResult()
