"""``session.permissions.*``: decisions, and what is decided beforehand."""

from __future__ import annotations

from jumpseat.handlers.context import Context
from jumpseat_protocol.permissions import HandlePendingPermissionRequestParams
from jumpseat_protocol.server import SuccessResult
from jumpseat_protocol.sessions import PendingRequestsResult, SessionParams, SetApproveAllParams
from jumpseat_protocol.wire import to_wire


def handle_pending_permission_request(ctx: Context, params: HandlePendingPermissionRequestParams) -> SuccessResult:
    """The first decision wins; ``no-result`` decides nothing and leaves the request to others."""
    session = ctx.registry.live(params.session_id)
    if params.result.kind == "no-result":
        return SuccessResult(success=False)
    return SuccessResult(success=session.permissions.pending.answer(params.request_id, params.result))


def set_approve_all(ctx: Context, params: SetApproveAllParams) -> SuccessResult:
    """Approve, or no longer approve, every call of this session without asking."""
    ctx.registry.live(params.session_id).permissions.approve_all = params.enabled
    return SuccessResult()


def reset_session_approvals(ctx: Context, params: SessionParams) -> SuccessResult:
    """Forget what was approved for the session."""
    ctx.registry.live(params.session_id).permissions.reset()
    return SuccessResult()


def pending_requests(ctx: Context, params: SessionParams) -> PendingRequestsResult:
    """What still waits for a decision, for clients that join late."""
    pending = ctx.registry.live(params.session_id).permissions.pending.open()
    shown = ctx.process.secrets.over
    return PendingRequestsResult(
        items=[{"requestId": one.id, "permissionRequest": to_wire(shown(one.question))} for one in pending]
    )
