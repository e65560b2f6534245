"""``runtime.shutdown``: end the process, after everything is written."""

from __future__ import annotations

from typing import Final

import anyio

from jumpseat.sessions.context import Context
from jumpseat_protocol.server import EmptyParams

HOOKS_S: Final = 2.0
"""How long the hooks of all sessions may take together: clients wait for the answer for ten seconds."""


async def shutdown(ctx: Context, params: EmptyParams) -> None:
    """Tell the hooks, flush and end all sessions, then answer. Nothing is served after that; the process goes."""
    # Also for a client that hangs up instead of waiting: that cancels its requests.
    with anyio.CancelScope(shield=True):
        with anyio.move_on_after(HOOKS_S):
            await ctx.registry.say_goodbye()
        await ctx.process.close_sessions()
    ctx.process.stop_soon()
