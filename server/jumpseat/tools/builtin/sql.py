"""``sql``: a database of the session's own, with tables for todos. Nothing needs asking: it holds nothing else."""

from __future__ import annotations

from functools import partial
from typing import Final, Protocol

from pydantic import Field

from jumpseat.agent.session.session import Session
from jumpseat.errors import StoreError
from jumpseat.tools.tool import BuiltinTool, Described, ToolArgs, ToolContext, ToolOutcome, failure
from jumpseat_protocol.events import SessionTodosChanged


class Database(Protocol):
    """What takes the statements."""

    async def run(self, query: str) -> tuple[str, bool]:
        """Run them; returns the results as text, and whether todos have changed.

        Raises:
            StoreError: one of them failed, for the reason that the text tells.
        """
        ...


class SqlArgs(ToolArgs):
    query: str = Field(description="One or more statements")
    description: str = Field("", description="What it does, in a few words")


SQL: Final = Described(
    name="sql",
    description=(
        "Run SQLite statements in a database of this session. Keep track of larger tasks in its tables"
        " todos (id, title, description, status: pending, in_progress, done or blocked) and"
        " todo_deps (todo_id, depends_on)."
    ),
    args=SqlArgs,
)


def sql(session: Session, database: Database) -> BuiltinTool[SqlArgs]:
    """The tool of one session."""
    return SQL.bound(
        partial(_run, session, database), lambda args: args.description or "Query the session's database"
    )


async def _run(session: Session, database: Database, ctx: ToolContext, args: SqlArgs) -> ToolOutcome:
    try:
        text, todos_changed = await database.run(args.query)
    except StoreError as error:
        return failure(str(error))
    if todos_changed:
        session.emit(SessionTodosChanged())
    return ToolOutcome(text)
