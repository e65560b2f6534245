"""``session.plan.*``: the plan of a session, ``plan.md`` in its folder, and the todos of its model."""

from __future__ import annotations

from typing import Any

from jumpseat.sessions.context import Context
from jumpseat.store.session.database import TodoRows
from jumpseat_protocol.events import SessionPlanChanged
from jumpseat_protocol.plan import (
    PlanReadResult,
    PlanUpdateParams,
    TodoDependency,
    TodoRow,
    TodosResult,
    TodosWithDependenciesResult,
)
from jumpseat_protocol.sessions import SessionParams


async def read(ctx: Context, params: SessionParams) -> PlanReadResult:
    """Return the plan, if there is one."""
    plan = ctx.registry.storage(ctx.registry.live(params.session_id)).plan
    content = await plan.read()
    return PlanReadResult(exists=content is not None, content=content, path=plan.path)


async def update(ctx: Context, params: PlanUpdateParams) -> None:
    """Replace the plan."""
    session = ctx.registry.live(params.session_id)
    is_new = await ctx.registry.storage(session).plan.write(params.content)
    session.emit(SessionPlanChanged(operation="create" if is_new else "update"))


async def delete(ctx: Context, params: SessionParams) -> None:
    """Delete the plan. Does nothing if there is none."""
    session = ctx.registry.live(params.session_id)
    if await ctx.registry.storage(session).plan.remove():
        session.emit(SessionPlanChanged(operation="delete"))


async def read_sql_todos(ctx: Context, params: SessionParams) -> TodosResult:
    return TodosResult(rows=(await read_sql_todos_with_dependencies(ctx, params)).rows)


async def read_sql_todos_with_dependencies(ctx: Context, params: SessionParams) -> TodosWithDependenciesResult:
    """Return the todos and the dependencies between them."""
    database = ctx.registry.storage(ctx.registry.live(params.session_id)).database
    found = TodoRows() if database is None else await database.todos()
    return TodosWithDependenciesResult(
        rows=[TodoRow(**{name: _text(row.get(name)) for name in TodoRow.model_fields}) for row in found.todos],
        dependencies=[
            TodoDependency(todo_id=str(row["todo_id"]), depends_on=str(row["depends_on"]))
            for row in found.dependencies
            if row.keys() >= {"todo_id", "depends_on"}
        ],
    )


def _text(value: Any) -> str | None:
    # The model writes these rows with SQL, so a column may hold any type.
    return None if value is None else str(value)
