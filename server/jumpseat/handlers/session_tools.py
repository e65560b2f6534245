"""``session.tools.*``: answers to client tool calls."""

from __future__ import annotations

from jumpseat.handlers.context import Context
from jumpseat_protocol.server import SuccessResult
from jumpseat_protocol.tools import HandlePendingToolCallParams


def handle_pending_tool_call(ctx: Context, params: HandlePendingToolCallParams) -> SuccessResult:
    """The first answer to a call wins; a late or unknown one is told so."""
    session = ctx.registry.live(params.session_id)
    return SuccessResult(success=session.clients.external_calls.answer(params.request_id, params))
