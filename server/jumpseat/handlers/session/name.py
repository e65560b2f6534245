"""``session.name.*``: the name of a session, given by its user or generated."""

from __future__ import annotations

from jumpseat.sessions.changes import set_session_name
from jumpseat.sessions.context import Context
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.state import AppliedResult, NameResult, NameSetAutoParams, NameSetParams


def get(ctx: Context, params: SessionParams) -> NameResult:
    """Return the name, or ``null`` if the session has none."""
    workspace = ctx.registry.storage(ctx.registry.live(params.session_id)).workspace
    return NameResult(name=workspace.name if workspace else None)


def set_(ctx: Context, params: NameSetParams) -> None:
    """Name the session on behalf of its user. Emits ``session.title_changed`` even if the name is the same."""
    set_session_name(ctx, ctx.registry.live(params.session_id), params.name, by_user=True)


def set_auto(ctx: Context, params: NameSetAutoParams) -> AppliedResult:
    """Name the session after a summary, unless its user has named it or the summary is empty."""
    session = ctx.registry.live(params.session_id)
    workspace = ctx.registry.storage(session).workspace
    if not params.summary.strip() or workspace is None or workspace.user_named:
        return AppliedResult(applied=False)
    set_session_name(ctx, session, params.summary, by_user=False)
    return AppliedResult(applied=True)
