"""``session.interruptMainTurn``: stop the running prompt, and run or drop the queued ones."""

from __future__ import annotations

from jumpseat.sessions.context import Context
from jumpseat_protocol.events import SessionInfo
from jumpseat_protocol.queue import InterruptParams, InterruptResult


async def interrupt_main_turn(ctx: Context, params: InterruptParams) -> InterruptResult:
    """Stop the running prompt or command, and answer when it has ended."""
    session = ctx.registry.live(params.session_id)
    stopped = session.interrupt(flush=params.flush_queued)
    if stopped is None:
        return InterruptResult(interrupted=False)
    session.emit(SessionInfo(info_type="cancellation", message="Operation cancelled by user"), ephemeral=True)
    await stopped
    return InterruptResult(interrupted=True)
