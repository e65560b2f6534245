"""``session.shutdown`` and ``session.suspend``: ending a session for good, or only its work."""

from __future__ import annotations

from datetime import datetime

import anyio

from jumpseat.agent.session.session import Session
from jumpseat.handlers.context import Context
from jumpseat_protocol.events import SessionShutdown
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.state import ShutdownParams


async def session_shutdown(ctx: Context, params: ShutdownParams) -> None:
    """Stop what runs, say what was used, and close. The session can be resumed from the disk."""
    session = ctx.registry.live(params.session_id)
    await session.hooks.session_end("error" if params.type == "error" else "complete")
    # Also for a client that hangs up instead of waiting: half an end would be none.
    with anyio.CancelScope(shield=True):
        await session.abort("user_initiated")
        try:
            session.emit(_summary(ctx, session, params))
        finally:
            await ctx.registry.close(session)


def _summary(ctx: Context, session: Session, params: ShutdownParams) -> SessionShutdown:
    metrics = session.metrics
    return SessionShutdown(
        shutdown_type=params.type,
        error_reason=params.reason if params.type == "error" else None,
        session_start_time=int(datetime.fromisoformat(session.started_at).timestamp() * 1000),
        total_api_duration_ms=metrics.api_ms,
        total_premium_requests=0,
        code_changes={
            "linesAdded": metrics.lines_added,
            "linesRemoved": metrics.lines_removed,
            "filesModified": list(metrics.files),
        },
        model_metrics=metrics.models_wire(),
        current_model=session.settings.model,
        events_file_size_bytes=ctx.registry.folder(session).log.size_bytes(),
    )


async def session_suspend(ctx: Context, params: SessionParams) -> None:
    """Stop what runs, with all that waits for a client, and bring the log to the disk. The session stays."""
    session = ctx.registry.live(params.session_id)
    await session.abort("user_initiated")
    session.flush()
