"""``session.remote.notifySteerableChanged``: a host reports whether it can be steered remotely."""

from __future__ import annotations

from jumpseat.sessions.context import Context
from jumpseat_protocol.events import SessionRemoteSteerableChanged
from jumpseat_protocol.server import EmptyResult
from jumpseat_protocol.state import SteerableParams


def notify_steerable_changed(ctx: Context, params: SteerableParams) -> EmptyResult:
    """Record the report in the log and emit it to all clients. It has no other effect on this server."""
    session = ctx.registry.live(params.session_id)
    session.emit(SessionRemoteSteerableChanged(remote_steerable=params.remote_steerable))
    return EmptyResult()
