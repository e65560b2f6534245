"""``runtime.shutdown``: end the process, after everything is written."""

from __future__ import annotations

import anyio

from jumpseat.handlers.context import Context
from jumpseat_protocol.server import EmptyParams


async def runtime_shutdown(ctx: Context, params: EmptyParams) -> None:
    """Flush and end all sessions, then answer. Nothing is served after that, and the process goes."""
    # Also for a client that hangs up instead of waiting: that cancels its requests.
    with anyio.CancelScope(shield=True):
        await ctx.process.close_sessions()
    ctx.process.stop_soon()
