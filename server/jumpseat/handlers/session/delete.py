"""``session.delete``: close a session and delete it from the disk."""

from __future__ import annotations

from jumpseat.errors import SessionInUseError, SessionNotFoundError
from jumpseat.sessions.context import Context
from jumpseat.sessions.session_fs import delete_session
from jumpseat_protocol.server import SuccessResult
from jumpseat_protocol.sessions import SessionParams


async def delete(ctx: Context, params: SessionParams) -> SuccessResult:
    """Delete a live or stored session. An unknown session gets ``success: false``, not an error.

    So does a session that another process has open."""
    try:
        await delete_session(ctx, params.session_id)
    except (SessionInUseError, SessionNotFoundError) as error:
        return SuccessResult(success=False, error=str(error))
    return SuccessResult()
