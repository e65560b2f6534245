"""``session.log``: a line for everybody who reads along."""

from __future__ import annotations

from jumpseat.sessions.context import Context
from jumpseat_protocol.events import EventPayload, SessionError, SessionInfo, SessionWarning
from jumpseat_protocol.state import LogParams, LogResult


def log(ctx: Context, params: LogParams) -> LogResult:
    """Publish it as an event of its level. An error ends no run, but SDKs that wait for one take it for its end."""
    session = ctx.registry.live(params.session_id)
    payload: EventPayload
    match params.level:
        case "info":
            payload = SessionInfo(info_type=params.type, message=params.message, url=params.url, tip=params.tip)
        case "warning":
            payload = SessionWarning(warning_type=params.type, message=params.message, url=params.url)
        case "error":
            payload = SessionError(error_type=params.type, message=params.message, url=params.url)
    return LogResult(event_id=session.emit(payload, ephemeral=params.ephemeral).id)
