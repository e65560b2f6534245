"""``session.settings.snapshot``: the settings of a session, without secrets."""

from __future__ import annotations

from datetime import datetime

from jumpseat.sessions.context import Context
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.state import SettingsModel, SettingsRepository, SettingsSnapshotResult
from jumpseat_protocol.version import __version__


def snapshot(ctx: Context, params: SessionParams) -> SettingsSnapshotResult:
    """Return the model, the client and the repository of a session."""
    session = ctx.registry.live(params.session_id)
    workspace = ctx.registry.storage(session).workspace
    owner, _, name = ((workspace.repository if workspace is not None else None) or "").rpartition("/")
    return SettingsSnapshotResult(
        client_name=session.settings.options.client_name,
        start_time_ms=int(datetime.fromisoformat(session.started_at).timestamp() * 1000),
        version=__version__,
        model=SettingsModel(
            model=session.settings.options.model, default_reasoning_effort=session.settings.options.reasoning_effort
        ),
        repo=SettingsRepository(
            name=name or None,
            owner_name=owner or None,
            branch=workspace.branch if workspace is not None else None,
        ),
    )
