"""``session.permissions.*``: decisions, and what is decided beforehand."""

from __future__ import annotations

from typing import Any

from jumpseat.handlers.context import Context
from jumpseat_protocol.permissions import HandlePendingPermissionRequestParams
from jumpseat_protocol.server import SuccessResult
from jumpseat_protocol.sessions import (
    PendingRequestsResult,
    ResetApprovalsParams,
    SessionParams,
    SetApproveAllParams,
)
from jumpseat_protocol.wire import to_wire


def handle_pending_permission_request(ctx: Context, params: HandlePendingPermissionRequestParams) -> SuccessResult:
    """The first decision wins; ``no-result`` decides nothing and leaves the request to others."""
    session = ctx.registry.live(params.session_id)
    if params.result.kind == "no-result":
        return SuccessResult(success=False)
    return SuccessResult(success=session.permissions.questions.pending.answer(params.request_id, params.result))


def set_approve_all(ctx: Context, params: SetApproveAllParams) -> SuccessResult:
    """Approve, or no longer approve, every call of this session without asking."""
    ctx.registry.live(params.session_id).permissions.set_mode("allow-all" if params.enabled else "manual")
    return SuccessResult()


def reset_session_approvals(ctx: Context, params: ResetApprovalsParams) -> SuccessResult:
    """Forget what was approved for the session; what is kept on the disk stays there."""
    ctx.registry.live(params.session_id).permissions.reset(kept_too=params.include_location)
    return SuccessResult()


def pending_requests(ctx: Context, params: SessionParams) -> PendingRequestsResult:
    """What still waits for a decision, for clients that join late."""
    permissions = ctx.registry.live(params.session_id).permissions
    items: list[dict[str, Any]] = [
        {
            "requestId": one.id,
            "request": permissions.questions.prompt(one),
            "permissionRequest": to_wire(one.question),
        }
        for one in permissions.questions.pending.open()
    ]
    return PendingRequestsResult(items=ctx.process.secrets.mask(items))
