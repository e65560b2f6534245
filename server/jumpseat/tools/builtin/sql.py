"""``sql``: run statements in a database of the session, which has tables for todos.

Needs no permission: the database contains nothing but what these calls put there.
"""

from __future__ import annotations

from typing import Final

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from jumpseat.agent.session.session import Session
from jumpseat.errors import StoreError
from jumpseat.tools.session_tool import Resources, SessionTool
from jumpseat.tools.tool import ToolArgs, ToolContext, ToolOutcome, failure
from jumpseat_protocol.events import SessionTodosChanged


class SqlArgs(ToolArgs):
    query: str
    description: str = Field("", description="In a few words")
    # Hidden from models: some were trained on a tool that has several databases, and name the only one here.
    database: SkipJsonSchema[str | None] = None


async def _run(session: Session, resources: Resources, ctx: ToolContext, args: SqlArgs) -> ToolOutcome:
    database = resources.database(session)
    if database is None:
        return failure("This session has no database.")
    try:
        text, todos_changed = await database.run(args.query)
    except StoreError as error:
        return failure(str(error))
    if todos_changed:
        session.emit(SessionTodosChanged())
    return ToolOutcome(text)


TOOL: Final = SessionTool(
    name="sql",
    description=(
        "Run SQLite statements in a database of the session. Keep track of larger tasks in its tables"
        " todos (id, title, description, status: pending, in_progress, done or blocked) and"
        " todo_deps (todo_id, depends_on)."
    ),
    args=SqlArgs,
    position=210,
    for_plans=True,
    run=_run,
    intention=lambda args: args.description or "Query the session's database",
    is_offered=lambda session, resources: resources.database(session) is not None,
)
