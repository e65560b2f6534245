"""``session.abort``: stop what runs."""

from __future__ import annotations

from collections.abc import Awaitable

from jumpseat.sessions.context import Context
from jumpseat_protocol.server import SuccessResult
from jumpseat_protocol.sessions import SessionAbortParams


def abort(ctx: Context, params: SessionAbortParams) -> Awaitable[SuccessResult]:
    """Stop the running prompt and forget the waiting ones, in the order of arrival: prompts that are sent behind
    it count. Answered when all is quiet; fine when idle, fine twice.
    """
    return _answer(ctx.registry.live(params.session_id).abort(params.reason or "user_initiated"))


async def _answer(stopped: Awaitable[None]) -> SuccessResult:
    await stopped
    return SuccessResult()
