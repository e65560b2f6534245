"""``jumpseat.permissions.*``: list and revoke the approvals that outlast their calls."""

from __future__ import annotations

from jumpseat.agent.permissions.approvals import OUTSIDE, ApprovalRecord, Kept
from jumpseat.agent.permissions.rules import Rule
from jumpseat.errors import InvalidRequestError
from jumpseat.sessions.context import Context
from jumpseat_protocol.approvals import KeptApproval, KeptApprovalsResult, RevokeParams
from jumpseat_protocol.permissions import WireRule
from jumpseat_protocol.server import SuccessResult
from jumpseat_protocol.sessions import SessionParams


def list_(ctx: Context, params: SessionParams) -> KeptApprovalsResult:
    """Return the approvals and allow rules that clients have added; without the right ``all``, no stored ones."""
    approvals = ctx.registry.live(params.session_id).permissions.approvals
    return KeptApprovalsResult(
        location=approvals.location_key, approvals=[_to_wire(kept) for kept in _visible(ctx, approvals.kept())]
    )


async def revoke(ctx: Context, params: RevokeParams) -> SuccessResult:
    """Revoke approvals: all of them, or none if one is unknown. Calls that run already are not affected.

    Raises:
        InvalidRequestError: an id is unknown.
        StoreError: the stored approvals cannot be written.
    """
    approvals = ctx.registry.live(params.session_id).permissions.approvals
    known = {kept.id: kept for kept in _visible(ctx, approvals.kept())}
    if unknown := [given for given in params.ids if given not in known]:
        raise InvalidRequestError(f"unknown approval {unknown[0][:64]!r}")
    for given in dict.fromkeys(params.ids):
        await approvals.revoke(known[given])
    return SuccessResult()


def _visible(ctx: Context, kept: list[Kept]) -> list[Kept]:
    """Return the approvals that the client may see and revoke: stored ones concern all clients."""
    access = ctx.connection.access
    return kept if access is not None and access.all else [one for one in kept if one.scope == "session"]


def _to_wire(kept: Kept) -> KeptApproval:
    rules = [WireRule(kind=rule.kind, argument=rule.argument) for rule in kept.rules if not _host(rule)]
    hosts = [host for rule in kept.rules if (host := _host(rule))]
    touched = kept.item if isinstance(kept.item, ApprovalRecord) else ApprovalRecord()
    return KeptApproval(
        id=kept.id,
        scope=kept.scope,
        rules=rules,
        hosts=hosts,
        paths=sorted(touched.paths),
        command_lines=[text.removeprefix(OUTSIDE) for text in sorted(touched.texts)]
        if touched.approval is not None and touched.approval.kind == "commands"
        else [],
    )


def _host(rule: Rule) -> str | None:
    return rule.argument if rule.kind == "url" else None
