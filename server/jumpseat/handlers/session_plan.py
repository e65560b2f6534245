"""``session.plan.*``: the plan of a session, ``plan.md`` in its folder."""

from __future__ import annotations

from jumpseat.handlers.context import Context
from jumpseat.store.files import read_text, remove_file, write_text
from jumpseat_protocol.events import SessionPlanChanged
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.state import PlanReadResult, PlanUpdateParams


def plan_read(ctx: Context, params: SessionParams) -> PlanReadResult:
    """The plan, if there is one."""
    path = ctx.registry.folder(ctx.registry.live(params.session_id)).plan_path
    content = read_text(path)
    return PlanReadResult(exists=content is not None, content=content, path=str(path))


def plan_update(ctx: Context, params: PlanUpdateParams) -> None:
    """Write the plan anew."""
    session = ctx.registry.live(params.session_id)
    path = ctx.registry.folder(session).plan_path
    is_new = not path.exists()
    write_text(path, params.content)
    session.emit(SessionPlanChanged(operation="create" if is_new else "update"))


def plan_delete(ctx: Context, params: SessionParams) -> None:
    """Remove the plan; where there is none, nothing happens."""
    session = ctx.registry.live(params.session_id)
    if remove_file(ctx.registry.folder(session).plan_path):
        session.emit(SessionPlanChanged(operation="delete"))
