"""``session.remote.notifySteerableChanged``: a host's note, kept for whoever reads the log."""

from __future__ import annotations

from jumpseat.sessions.context import Context
from jumpseat_protocol.events import SessionRemoteSteerableChanged
from jumpseat_protocol.state import EmptyResult, SteerableParams


def notify_steerable_changed(ctx: Context, params: SteerableParams) -> EmptyResult:
    """Write it down and pass it on. This server itself steers nothing remotely."""
    session = ctx.registry.live(params.session_id)
    session.emit(SessionRemoteSteerableChanged(remote_steerable=params.remote_steerable))
    return EmptyResult()
