"""``session.ui.*``: answers to questions that were put to the user."""

from __future__ import annotations

from jumpseat.handlers.context import Context
from jumpseat_protocol.server import SuccessResult
from jumpseat_protocol.state import HandlePendingUserInputParams


def handle_pending_user_input(ctx: Context, params: HandlePendingUserInputParams) -> SuccessResult:
    """The first answer to a question wins; a late or unknown one is told so."""
    session = ctx.registry.live(params.session_id)
    return SuccessResult(success=session.user_inputs.answer(params.request_id, params.response))
