"""``session.resume``: join a live session, or load a stored one."""

from __future__ import annotations

from jumpseat.handlers.session.canvas import open_canvases
from jumpseat.handlers.session.create import opened_result
from jumpseat.sessions.context import Context
from jumpseat.sessions.opening import resume_session
from jumpseat_protocol.sessions import SessionOpenedResult, SessionResumeParams


async def resume(ctx: Context, params: SessionResumeParams) -> SessionOpenedResult:
    """Attach this connection to a session. Options in ``params`` replace those of the session."""
    session = await resume_session(ctx, params)
    result = opened_result(ctx, session)
    if session.canvases.provided():
        result.open_canvases = open_canvases(session)
    return result
