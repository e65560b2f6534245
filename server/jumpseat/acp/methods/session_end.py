"""``session/close`` and ``session/delete``."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from jumpseat.acp.editor.context import AcpContext
from jumpseat.acp.translation.params import SessionParams
from jumpseat.errors import SessionNotFoundError


async def close(door: AcpContext, params: SessionParams) -> dict[str, Any]:
    """Stop what runs in a session and let it go; it stays on the disk."""
    await door.view(params.session_id).cancel()
    await door.ctx.registry.leave(params.session_id, door.ctx.connection)
    door.views.pop(params.session_id, None)
    return {}


async def delete(door: AcpContext, params: SessionParams) -> dict[str, Any]:
    """Remove a session; one that is gone already is as good as removed."""
    with suppress(SessionNotFoundError):
        await door.ctx.registry.delete(params.session_id)
    door.views.pop(params.session_id, None)
    return {}
