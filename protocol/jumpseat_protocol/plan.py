"""``session.plan.*``: the plan of a session, and the todos of its model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from pydantic import StrictBool

from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.wire import Method, WireModel


class PlanUpdateParams(WireModel):
    session_id: str
    content: str


class PlanReadResult(WireModel):
    """``path`` is set even if the plan does not exist."""

    sent_as_null: ClassVar[tuple[str, ...]] = ("content", "path")

    exists: StrictBool
    content: str | None = None
    path: str | None = None


class TodoRow(WireModel):
    """A todo. Columns that the table lacks are left out."""

    id: str | None = None
    title: str | None = None
    description: str | None = None
    status: str | None = None
    created_at: str | None = None


class TodoDependency(WireModel):
    todo_id: str
    depends_on: str


class TodosResult(WireModel):
    rows: list[TodoRow]


class TodosWithDependenciesResult(TodosResult):
    dependencies: list[TodoDependency]


METHODS: Final[Mapping[str, Method]] = {
    "session.plan.read": Method(SessionParams, PlanReadResult),
    "session.plan.update": Method(PlanUpdateParams, None),
    "session.plan.delete": Method(SessionParams, None),
    "session.plan.readSqlTodos": Method(SessionParams, TodosResult),
    "session.plan.readSqlTodosWithDependencies": Method(SessionParams, TodosWithDependenciesResult),
}
