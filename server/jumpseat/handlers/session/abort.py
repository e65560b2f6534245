"""``session.abort``: stop the running prompt."""

from __future__ import annotations

from collections.abc import Awaitable

from jumpseat.sessions.context import Context
from jumpseat_protocol.server import SuccessResult
from jumpseat_protocol.sessions import SessionAbortParams


def abort(ctx: Context, params: SessionAbortParams) -> Awaitable[SuccessResult]:
    """Stop the running prompt and drop the queued ones. Prompts that arrive after the request are not affected.

    The response is sent when the session is idle. Aborting an idle session succeeds.
    """
    session = ctx.registry.live(params.session_id)
    session.report_interruption()
    return _success(session.abort(params.reason or "user_initiated"))


async def _success(stopped: Awaitable[None]) -> SuccessResult:
    await stopped
    return SuccessResult()
