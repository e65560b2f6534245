"""End a session on request: its work is stopped, its usage is logged, and it can be resumed from the disk."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import anyio

from jumpseat.agent.session.session import Session
from jumpseat.sessions.registry import SessionRegistry
from jumpseat_protocol.events import SessionShutdown


async def shut_down_session(
    registry: SessionRegistry, session: Session, kind: Literal["routine", "error"], reason: str | None = None
) -> None:
    """Run the session-end hooks, stop the session's work, emit ``session.shutdown`` and close the session.

    ``reason`` is logged if ``kind`` is ``error``.
    """
    await session.hooks.session_end("error" if kind == "error" else "complete")
    # Shielded, because a client that hangs up cancels its request: a session must not end halfway.
    with anyio.CancelScope(shield=True):
        await session.abort("user_initiated")
        if not registry.is_live(session):
            # Another request has closed the session during the hooks. Wait until its log is complete.
            await registry.find_live(session.id)
            return
        try:
            session.emit(_shutdown_event(registry, session, kind, reason))
        finally:
            await registry.close(session)


def _shutdown_event(
    registry: SessionRegistry, session: Session, kind: Literal["routine", "error"], reason: str | None
) -> SessionShutdown:
    metrics = session.metrics
    return SessionShutdown(
        shutdown_type=kind,
        error_reason=reason if kind == "error" else None,
        session_start_time=int(datetime.fromisoformat(session.started_at).timestamp() * 1000),
        total_api_duration_ms=metrics.api_ms,
        total_premium_requests=0,
        code_changes={
            "linesAdded": metrics.lines_added,
            "linesRemoved": metrics.lines_removed,
            "filesModified": list(metrics.files),
        },
        model_metrics=metrics.models_wire(),
        current_model=session.settings.options.model,
        events_file_size_bytes=registry.storage(session).log.size_bytes(),
    )
