"""``session.list``, ``session.getMetadata``, ``session.getLastId``: what is on the disk."""

from __future__ import annotations

from jumpseat.handlers.context import Context
from jumpseat_protocol.server import EmptyParams
from jumpseat_protocol.sessions import (
    SessionGetMetadataResult,
    SessionIdResult,
    SessionListParams,
    SessionListResult,
    SessionParams,
)


def session_list(ctx: Context, params: SessionListParams) -> SessionListResult:
    """All sessions that were prompted at least once, the last changed first."""
    return SessionListResult(sessions=ctx.registry.list(params.filter))


def session_get_metadata(ctx: Context, params: SessionParams) -> SessionGetMetadataResult:
    """One of them; no ``session`` where it is unknown."""
    return SessionGetMetadataResult(session=ctx.registry.metadata(params.session_id))


def session_get_last_id(ctx: Context, params: EmptyParams) -> SessionIdResult:
    """The one that changed last; nothing on an empty home."""
    return SessionIdResult(session_id=ctx.registry.last_id())
