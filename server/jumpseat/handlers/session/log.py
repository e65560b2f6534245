"""``session.log``: a message to all clients of a session."""

from __future__ import annotations

from jumpseat.sessions.context import Context
from jumpseat_protocol.events import EventPayload, SessionError, SessionInfo, SessionWarning
from jumpseat_protocol.state import LogParams, LogResult


def log(ctx: Context, params: LogParams) -> LogResult:
    """Emit a message as an event of its level.

    A message of level ``error`` does not end the run, but SDKs that wait for the run stop waiting.
    """
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
