"""``session/close`` and ``session/delete``."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from jumpseat.acp.editor.context import AcpContext
from jumpseat.acp.translation.params import SessionParams
from jumpseat.errors import SessionNotFoundError


async def close(ctx: AcpContext, params: SessionParams) -> dict[str, Any]:
    """Abort a session's turn and close the session, unless other clients have it open. It stays on the disk."""
    view = ctx.view(params.session_id)
    if len(view.session.clients) <= 1:
        await view.cancel()
    await ctx.server.registry.detach_and_close(params.session_id, ctx.server.connection)
    ctx.views.pop(params.session_id, None)
    return {}


async def delete(ctx: AcpContext, params: SessionParams) -> dict[str, Any]:
    """Delete a session. An unknown one is ignored."""
    with suppress(SessionNotFoundError):
        await ctx.server.registry.delete(params.session_id)
    ctx.views.pop(params.session_id, None)
    return {}
