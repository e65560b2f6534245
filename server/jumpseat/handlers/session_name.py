"""``session.name.*``: what the session is called, by its user or by a program."""

from __future__ import annotations

from jumpseat.errors import InvalidRequestError
from jumpseat.handlers.context import Context
from jumpseat_protocol.events import SessionTitleChanged
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.state import AppliedResult, NameResult, NameSetAutoParams, NameSetParams


def name_get(ctx: Context, params: SessionParams) -> NameResult:
    """The name, if it has one."""
    workspace = ctx.registry.folder(ctx.registry.live(params.session_id)).workspace
    return NameResult(name=workspace.name if workspace else None)


def name_set(ctx: Context, params: NameSetParams) -> None:
    """Name it for the user; announced each time."""
    name = params.name.strip()
    if not name:
        raise InvalidRequestError("the name of a session must not be empty")
    _rename(ctx, params.session_id, name, by_user=True)


def name_set_auto(ctx: Context, params: NameSetAutoParams) -> AppliedResult:
    """Name it by a summary, unless the user has named it."""
    workspace = ctx.registry.folder(ctx.registry.live(params.session_id)).workspace
    name = params.summary.strip()
    if not name or workspace is None or workspace.user_named:
        return AppliedResult(applied=False)
    _rename(ctx, params.session_id, name, by_user=False)
    return AppliedResult(applied=True)


def _rename(ctx: Context, session_id: str, name: str, *, by_user: bool) -> None:
    session = ctx.registry.live(session_id)
    ctx.registry.folder(session).rename(name, by_user=by_user)
    session.emit(SessionTitleChanged(title=name))
