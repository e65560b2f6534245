"""The SQLite database of one session in ``session.db``, and the statements of its model with results as text.

The first statement creates it with two tables, ``todos`` and ``todo_deps``. Queries of a model are limited in time,
memory and size, and have access to this file only. A call is one transaction. sqlite3 is imported at first use.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread
from msgspec import Struct, field

from jumpseat.errors import StoreError
from jumpseat.system.private_files import owner_only

if TYPE_CHECKING:
    import sqlite3

MAX_QUERY: Final = 256 * 1024
MAX_STATEMENTS: Final = 200
MAX_ROWS: Final = 1000
"""Limit on the rows of one result that the model gets."""
MAX_SHOWN: Final = 256 * 1024
"""Limit on the rows of one result that the model gets, in characters."""

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS todos (
    id TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    description TEXT,
    status TEXT DEFAULT 'pending',
    created_at TEXT DEFAULT CURRENT_TIMESTAMP,
    updated_at TEXT DEFAULT CURRENT_TIMESTAMP
);
CREATE TABLE IF NOT EXISTS todo_deps (
    todo_id TEXT NOT NULL,
    depends_on TEXT NOT NULL,
    PRIMARY KEY (todo_id, depends_on)
);
"""
TODO_TABLES: Final = frozenset({"todos", "todo_deps"})

# Strings, names and comments are one token each, so that a semicolon in them ends no statement. One that is not
# closed lasts to the end.
_TOKEN: Final = re.compile(
    r"'[^']*(?:'|\Z)|\"[^\"]*(?:\"|\Z)|`[^`]*(?:`|\Z)|\[[^\]]*(?:\]|\Z)|--[^\n]*|/\*.*?(?:\*/|\Z)|;|[^;'\"`\[/-]+|.",
    re.DOTALL,
)
_COMMENTS: Final = re.compile(r"(?:\s+|--[^\n]*(?:\n|\Z)|/\*.*?(?:\*/|\Z))+", re.DOTALL)
_TRIGGER_END: Final = re.compile(r"\bend\s*;\Z", re.IGNORECASE)
_WORD: Final = re.compile(r"[A-Za-z]+")
# Pragmas that only read, and the one that full text search needs.
READING_PRAGMAS: Final = frozenset(
    {"table_info", "table_xinfo", "table_list", "index_list", "index_info", "foreign_key_list", "data_version"}
)
VERBS: Final = {"INSERT": "inserted", "REPLACE": "inserted", "UPDATE": "updated", "DELETE": "deleted"}


def statements_of(query: str) -> list[str]:
    """Return the statements of a model's query.

    Raises:
        StoreError: the query is empty or too long.
    """
    if len(query) > MAX_QUERY:
        raise StoreError(f"The query is longer than {MAX_QUERY} characters. Split it.")
    statements = list(split_statements(query))
    if not statements:
        raise StoreError("The query contains no statement.")
    if len(statements) > MAX_STATEMENTS:
        raise StoreError(f"The query has more than {MAX_STATEMENTS} statements. Split it.")
    return statements


def split_statements(query: str) -> Iterator[str]:
    """Yield the statements of ``query``, without those that consist of comments.

    Raises:
        StoreError: a trigger has too many statements to find its end in time.
    """
    import sqlite3

    pending: list[str] = []
    in_create = False
    looked = 0
    for match in _TOKEN.finditer(query):
        pending.append(match[0])
        if match[0] != ";":
            continue
        if in_create and not _TRIGGER_END.search("".join(pending[-8:])):
            continue
        text = "".join(pending)
        # The body of a trigger has semicolons of its own.
        in_create = first_word(text) == "CREATE" and not sqlite3.complete_statement(text)
        looked += in_create
        if looked > MAX_STATEMENTS:
            raise StoreError("The query has a trigger with too many statements.")
        if not in_create:
            pending.clear()
            if first_word(text):
                yield text.strip()
    text = "".join(pending)
    if first_word(text):
        yield text.strip()


def first_word(statement: str) -> str:
    """Return the first word of a statement in capitals; empty if there is nothing to run."""
    comments = _COMMENTS.match(statement)
    rest = statement[comments.end() if comments else 0 :]
    word = _WORD.match(rest)
    return word[0].upper() if word else rest.strip("; \t\r\n")[:1]


def main_verb(statement: str) -> str:
    """Return the verb of a statement that begins with WITH; empty if it only reads."""
    words = (word.upper() for word in _WORD.findall(without_quoted(statement)))
    return next((word for word in words if word in VERBS), "")


def without_quoted(statement: str) -> str:
    """Return a statement without its strings and quoted names."""
    return _TOKEN.sub(lambda token: " " if token[0][0] in "'\"`[" else token[0], statement)


def format_rows(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Format rows as a table with one line per row, up to the limits of this module."""
    lines = [" | ".join(names)]
    size = len(lines[0])
    for number, row in enumerate(rows):
        line = " | ".join(map(_format_value, row))
        if number >= MAX_ROWS or size + len(line) > MAX_SHOWN:
            lines.append(f"[Only the first {number} rows are shown. Use LIMIT to select fewer.]")
            break
        lines.append(line)
        size += len(line)
    return "\n".join(lines) if len(lines) > 1 else f"No rows. Columns: {', '.join(names)}"


def _format_value(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    return str(value).replace("\\", "\\\\").replace("\n", "\\n") if isinstance(value, str) else str(value)


def report(results: list[tuple[str, str]]) -> str:
    if len(results) == 1:
        return results[0][1]
    shown = [f"{place}. {kind}\n{_indented(text)}" for place, (kind, text) in enumerate(results, 1)]
    return f"Executed {len(results)} statement(s):\n\n" + "\n\n".join(shown)


def _indented(text: str) -> str:
    return "\n".join(f"   {line}" for line in text.split("\n"))


def changed_rows(verb: str, count: int, last: int | None) -> str:
    """Return the result of a statement that has changed rows."""
    text = f"{count} row(s) {verb}."
    return f"{text} Last inserted row ID: {last}." if verb == "inserted" and count else text


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
