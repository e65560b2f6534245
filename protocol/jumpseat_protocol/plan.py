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
    """The text of the plan."""


class PlanReadResult(WireModel):
    """``path`` is set even if the plan does not exist."""

    sent_as_null: ClassVar[tuple[str, ...]] = ("content", "path")

    exists: StrictBool
    """Whether there is a plan."""
    content: str | None = None
    """The text of the plan."""
    path: str | None = None
    """The file of the plan."""


class TodoRow(WireModel):
    """A todo. Columns that the table lacks are left out."""

    id: str | None = None
    """The id of the todo."""
    title: str | None = None
    description: str | None = None
    status: str | None = None
    """Its state."""
    created_at: str | None = None
    """When it was added."""


class TodoDependency(WireModel):
    """A todo that has to wait for another one."""

    todo_id: str
    """The id of the todo."""
    depends_on: str
    """The id of the one that comes first."""


class TodosResult(WireModel):
    rows: list[TodoRow]
    """The todos."""


class TodosWithDependenciesResult(TodosResult):
    dependencies: list[TodoDependency]
    """Which todos wait for others."""


METHODS: Final[Mapping[str, Method]] = {
    "session.plan.read": Method(SessionParams, PlanReadResult, "Read the plan."),
    "session.plan.update": Method(PlanUpdateParams, None, "Write the plan."),
    "session.plan.delete": Method(SessionParams, None, "Delete the plan."),
    "session.plan.readSqlTodos": Method(SessionParams, TodosResult, "Return the todos."),
    "session.plan.readSqlTodosWithDependencies": Method(
        SessionParams, TodosWithDependenciesResult, "Return the todos, and which wait for others."
    ),
}
