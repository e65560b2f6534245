"""The SQLite database of one session, to which its model writes: ``session.db`` in the session's folder.

The first statement creates it with two tables, ``todos`` and ``todo_deps``. Queries of a model are limited in time,
memory and size, and have access to this file only. A call is one transaction. sqlite3 is imported at first use.
"""

from __future__ import annotations

from contextlib import closing, suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread
from msgspec import Struct, field

from jumpseat.errors import StoreError
from jumpseat.store.session.sql_text import (
    MAX_ROWS,
    READING_PRAGMAS,
    SCHEMA,
    TODO_TABLES,
    VERBS,
    changed_rows,
    first_word,
    format_rows,
    main_verb,
    report,
    statements_of,
)
from jumpseat.system.private_files import owner_only

if TYPE_CHECKING:
    import sqlite3

TIMEOUT_S: Final = 10.0
"""Time-out of all statements of a call together."""
MAX_BYTES: Final = 64 * 1024 * 1024
"""Largest size of the file."""
MAX_MEMORY: Final = 256 * 1024 * 1024
"""Limit on SQLite's memory in this process: sorting and grouping happen in memory."""
MAX_VALUE: Final = 4 * 1024 * 1024


class TodoRows(Struct):
    """The rows of the two tables, as dictionaries by column; a model may have removed columns."""

    todos: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    dependencies: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


class SessionDatabase:
    """The database at ``path``, which need not exist."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def run(self, query: str) -> tuple[str, bool]:
        """Run the statements of ``query``, all or none of them.

        Returns the results as text for the model, and whether todos have changed.

        Raises:
            StoreError: a statement failed; the text is the reason.
        """
        running = _Running()
        try:
            return await anyio.to_thread.run_sync(self._run, query, running, abandon_on_cancel=True)
        finally:
            # A thread cannot be stopped, but its SQLite query can.
            running.stopped = True

    async def todos(self) -> TodoRows:
        """Read the todos and their dependencies; empty if there is no database or it cannot be read."""
        if not self.path.is_file():
            return TodoRows()
        return await anyio.to_thread.run_sync(self._todos)

    def copy_to(self, path: Path) -> None:
        """Copy the database consistently, even while it is being written.

        Raises:
            OSError: the database cannot be copied.
        """
        if not self.path.is_file():
            return
        import sqlite3

        try:
            with open(path, "ab", opener=owner_only):
                pass
            with closing(sqlite3.connect(self.path)) as source, closing(sqlite3.connect(path)) as target:
                source.backup(target)
        except sqlite3.Error as error:
            raise OSError(f"cannot copy the session's database: {error}") from None

    def _run(self, query: str, running: _Running) -> tuple[str, bool]:
        import sqlite3

        # Replaces lone surrogates, which a model may send.
        query = query.encode("utf-8", "replace").decode()
        statements = statements_of(query)
        place = 0
        try:
            with closing(self._open()) as connection:
                connection.execute("BEGIN IMMEDIATE")
                guard = _Guard(connection, running)
                results: list[tuple[str, str]] = []
                for statement in statements:
                    place += 1
                    results.append(_execute(connection, guard, statement))
                guard.lift()
                connection.execute("COMMIT")
                return report(results), guard.todos_changed
        except (sqlite3.Error, sqlite3.Warning, OverflowError) as error:
            where = f"Statement {place} failed, and nothing was changed: " if len(statements) > 1 else ""
            raise StoreError(where + _reason(error, running)) from None
        except OSError as error:
            raise StoreError(f"Cannot use the session's database: {error.strerror or error}") from None

    def _open(self) -> sqlite3.Connection:
        import sqlite3

        # SQLite gives its journal the mode of the database, and reports errors itself.
        with suppress(OSError), open(self.path, "ab", opener=owner_only):
            pass
        connection = sqlite3.connect(self.path, timeout=TIMEOUT_S, isolation_level=None)
        try:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
            connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            connection.setlimit(sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0)
            for pragma in (
                f"hard_heap_limit = {MAX_MEMORY}",
                "temp_store = MEMORY",
                "trusted_schema = OFF",
                "cell_size_check = ON",
            ):
                connection.execute(f"PRAGMA {pragma}")
            (page_size,) = connection.execute("PRAGMA page_size").fetchone()
            connection.execute(f"PRAGMA max_page_count = {MAX_BYTES // page_size}")
            connection.executescript(SCHEMA)
        except BaseException:
            connection.close()
            raise
        return connection

    def _todos(self) -> TodoRows:
        import sqlite3

        try:
            with closing(sqlite3.connect(f"{self.path.as_uri()}?mode=ro", uri=True, timeout=1)) as connection:
                connection.row_factory = sqlite3.Row
                return TodoRows(_rows(connection, "todos"), _rows(connection, "todo_deps"))
        except sqlite3.Error:
            return TodoRows()


class _Running(Struct):
    """A running call: its deadline, and whether its caller has ``stopped`` waiting."""

    deadline: float = field(default_factory=lambda: monotonic() + TIMEOUT_S)
    stopped: bool = False

    def over(self) -> bool:
        """Return whether SQLite has to interrupt the query."""
        return self.stopped or monotonic() > self.deadline


class _Guard:
    """SQLite's authorizer for the model's statements; it also records changes of the todos."""

    def __init__(self, connection: sqlite3.Connection, running: _Running) -> None:
        import sqlite3

        self._connection = connection
        self._denied = {sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_TRANSACTION}
        self._changes = {sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE}
        self._shapes = {sqlite3.SQLITE_DROP_TABLE, sqlite3.SQLITE_ALTER_TABLE}
        self._ok, self._deny = sqlite3.SQLITE_OK, sqlite3.SQLITE_DENY
        self._pragma = sqlite3.SQLITE_PRAGMA
        self._function = sqlite3.SQLITE_FUNCTION
        self._touched = False
        self.todos_changed = False
        connection.set_authorizer(self._judge)
        connection.set_progress_handler(running.over, 1000)

    def begin(self) -> None:
        """Prepare for the next statement."""
        self._touched = False

    def done(self, changed: bool) -> None:
        """Record whether the statement has changed rows or tables."""
        self.todos_changed = self.todos_changed or (self._touched and changed)

    def lift(self) -> None:
        """Remove the authorizer, which would deny our COMMIT."""
        self._connection.set_authorizer(None)

    def _judge(
        self, action: int, first: str | None, second: str | None, _database: str | None, _trigger: str | None
    ) -> int:
        if action in self._denied or (action == self._pragma and first not in READING_PRAGMAS):
            return self._deny
        if action == self._function and second in ("load_extension", "readfile", "writefile", "fts3_tokenizer"):
            return self._deny
        if action in self._changes and first in TODO_TABLES:
            self._touched = True
        if action in self._shapes and (first in TODO_TABLES or second in TODO_TABLES):
            self._touched = True
        return self._ok


def _execute(connection: sqlite3.Connection, guard: _Guard, statement: str) -> tuple[str, str]:
    """Run one statement; return its first word and its result as text."""
    kind = first_word(statement)
    if kind in ("BEGIN", "COMMIT", "END"):
        return kind, "Not needed: the statements of a call run as one transaction."
    guard.begin()
    before = connection.total_changes
    cursor = connection.execute(statement)
    names = [column[0] for column in cursor.description or ()]
    rows = format_rows(names, cursor) if names else None
    changed = connection.total_changes - before
    guard.done(bool(changed) or kind in ("DROP", "ALTER"))
    if rows is not None:
        return kind, rows
    verb = VERBS.get(main_verb(statement) if kind == "WITH" else kind)
    if verb is None:
        return kind, "Schema operation completed successfully."
    # The cursor does not know these for statements that begin with WITH.
    count, last = connection.execute("SELECT changes(), last_insert_rowid()").fetchone() if changed else (0, 0)
    return kind, changed_rows(verb, count, last)


def _reason(error: Exception, running: _Running) -> str:
    text = str(error)
    if text == "interrupted" or running.over():
        return f"The query took longer than {TIMEOUT_S:g} s."
    if text in ("not authorized", "authorization denied", "too many attached databases - max 0"):
        return "ATTACH, ROLLBACK, extensions and most PRAGMAs are not available here."
    return f"{text[:300]}."


def _rows(connection: sqlite3.Connection, table: str) -> list[dict[str, Any]]:
    # A model may have dropped the table.
    known = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)).fetchone()
    if known is None:
        return []
    found = connection.execute(f"SELECT * FROM {table} ORDER BY rowid LIMIT {MAX_ROWS}")  # noqa: S608 - our names
    return [dict(row) for row in found]
