"""``session.history.truncate`` and ``sessions.fork``: going back, in place or in a copy."""

from __future__ import annotations

from jumpseat.handlers.context import Context
from jumpseat_protocol.events import SessionSnapshotRewind
from jumpseat_protocol.state import ForkParams, ForkResult, TruncateParams, TruncateResult


def truncate(ctx: Context, params: TruncateParams) -> TruncateResult:
    """Remove an event and all later ones, also for the model. Files stay as they are."""
    session = ctx.registry.live(params.session_id)
    removed = ctx.registry.truncate(session, params.event_id)
    session.emit(SessionSnapshotRewind(events_removed=removed, up_to_event_id=params.event_id))
    return TruncateResult(events_removed=removed)


def fork(ctx: Context, params: ForkParams) -> ForkResult:
    """Copy a session up to an event; the copy is resumed like any stored session."""
    name = (params.name or "").strip() or None
    return ForkResult(session_id=ctx.registry.fork(params.session_id, params.to_event_id, name), name=name)
