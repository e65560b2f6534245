"""``runtime.shutdown``: end the process."""

from __future__ import annotations

from typing import Final

import anyio

from jumpseat.sessions.context import Context
from jumpseat_protocol.server import EmptyParams

HOOKS_S: Final = 2.0
"""The time for the hooks of all sessions together, in seconds; clients wait ten seconds for the response."""


async def shutdown(ctx: Context, params: EmptyParams) -> None:
    """Run the session-end hooks, close and flush all sessions, answer, and end the process."""
    # Shielded, because a client that hangs up cancels its request.
    with anyio.CancelScope(shield=True):
        with anyio.move_on_after(HOOKS_S):
            await ctx.registry.run_session_end_hooks()
        await ctx.process.close_sessions()
    ctx.process.stop_soon()
