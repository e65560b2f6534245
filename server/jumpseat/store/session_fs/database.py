"""The database of a session in a virtual file system: the client runs the statements of the model.

Statements that reach beyond the database, such as ``ATTACH``, are not sent. Several statements of a call are one
transaction, unless the client has none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import anyio

from jumpseat.errors import StoreError
from jumpseat.store.session.database import (
    MAX_ROWS,
    READING_PRAGMAS,
    SCHEMA,
    TODO_TABLES,
    VERBS,
    TodoRows,
    changed_rows,
    first_word,
    format_rows,
    main_verb,
    report,
    statements_of,
    without_quoted,
)
from jumpseat.store.session_fs.file_system import FileSystem
from jumpseat_protocol.session_fs import SqliteQueryResult, SqlKind, SqlStatement

BUSY_WAITS_S: Final = (0.05, 0.2, 0.8)
"""Times before a transaction is tried again that found the database in use."""
_NOT_NEEDED: Final = frozenset({"BEGIN", "COMMIT", "END"})
_SCHEMA_WORDS: Final = frozenset({"CREATE", "DROP", "ALTER", "REINDEX", "ANALYZE"})
_READING: Final = frozenset({"SELECT", "VALUES", "EXPLAIN", "WITH"})
_FUNCTIONS: Final = re.compile(r"\b(load_extension|readfile|writefile|edit|fts3_tokenizer)\s*\(", re.IGNORECASE)
_PRAGMA: Final = re.compile(r"\s*pragma\s+(?:\w+\s*\.\s*)?(\w+)", re.IGNORECASE)


class ClientDatabase:
    """Implements :class:`jumpseat.store.session.storage.StoredDatabase`."""

    def __init__(self, file_system: FileSystem) -> None:
        self._fs = file_system
        self._has_transactions = True

    async def run(self, query: str) -> tuple[str, bool]:
        statements = statements_of(query.encode("utf-8", "replace").decode())
        kinds: list[SqlKind | None] = [_kind(statement) for statement in statements]
        sent = [
            SqlStatement(query=statement, query_type=kind)
            for statement, kind in zip(statements, kinds, strict=True)
            if kind is not None
        ]
        await self._fs.has_database()
        await self._fs.query(SCHEMA.strip(), "exec")
        results = iter(await self._run(sent))
        shown = [
            (
                first_word(statement),
                _result(statement, kind, next(results)) if kind is not None else _NO_TRANSACTION,
            )
            for statement, kind in zip(statements, kinds, strict=True)
        ]
        return report(shown), any(map(_changes_todos, sent))

    async def todos(self) -> TodoRows:
        try:
            if not await self._fs.has_database():
                return TodoRows()
            return TodoRows(await self._rows("todos"), await self._rows("todo_deps"))
        except StoreError:
            return TodoRows()

    async def _rows(self, table: str) -> list[dict[str, Any]]:
        found = await self._fs.query(f"SELECT * FROM {table} ORDER BY rowid LIMIT {MAX_ROWS}", "query")  # noqa: S608
        return found.rows[:MAX_ROWS]

    async def _run(self, statements: Sequence[SqlStatement]) -> list[SqliteQueryResult]:
        if len(statements) > 1 and self._has_transactions:
            results = await self._transact(list(statements))
            if results is not None:
                return results
        done: list[SqliteQueryResult] = []
        for place, statement in enumerate(statements, 1):
            try:
                done.append(await self._fs.query(statement.query, statement.query_type))
            except StoreError as error:
                where = f"Statement {place} failed; those before it were carried out: " if place > 1 else ""
                raise StoreError(f"{where}{error}") from None
        return done

    async def _transact(self, statements: list[SqlStatement]) -> list[SqliteQueryResult] | None:
        """Run statements as one transaction; ``None`` if the client has no transactions."""
        for wait_s in (*BUSY_WAITS_S, None):
            answer = await self._fs.transact(statements)
            error = answer.error
            if error is None:
                if len(answer.results) != len(statements):
                    raise StoreError("the client's answer has a different number of results than statements")
                return answer.results
            if error.error_class == "busyOrLocked" and wait_s is not None:
                await anyio.sleep(wait_s)
                continue
            if error.error_class == "fatal" and "not supported" in error.message.lower():
                self._has_transactions = False
                return None
            if error.error_class == "postCommitAmbiguous":
                raise StoreError(f"It is not known whether the statements were carried out: {error.message[:300]}")
            raise StoreError(f"A statement failed, and nothing was changed: {error.message[:300]}")
        raise AssertionError("the last attempt returns or raises")


_NO_TRANSACTION: Final = "Not needed: the statements of a call run as one transaction."


def _kind(statement: str) -> SqlKind | None:
    """Return how a client runs a statement; ``None`` for those that are not needed.

    Raises:
        StoreError: the statement reaches beyond the database.
    """
    word = first_word(statement)
    if word in _NOT_NEEDED:
        return None
    bare = without_quoted(statement)
    pragma = _PRAGMA.match(bare)
    if _FUNCTIONS.search(bare) or (pragma is not None and pragma[1].lower() not in READING_PRAGMAS):
        raise StoreError("ATTACH, ROLLBACK, extensions and most PRAGMAs are not available here.")
    if pragma is not None:
        return "query"
    verb = main_verb(statement) if word == "WITH" else word
    if verb in VERBS:
        return "query" if re.search(r"\breturning\b", bare, re.IGNORECASE) else "run"
    if word in _SCHEMA_WORDS:
        return "exec"
    if word in _READING:
        return "query"
    raise StoreError("ATTACH, ROLLBACK, extensions and most PRAGMAs are not available here.")


def _result(statement: str, kind: SqlKind, result: SqliteQueryResult) -> str:
    if kind == "query":
        names = result.columns or list(result.rows[0] if result.rows else ())
        return format_rows(names, ([row.get(name) for name in names] for row in result.rows))
    word = first_word(statement)
    verb = VERBS.get(main_verb(statement) if word == "WITH" else word)
    if verb is None:
        return "Schema operation completed successfully."
    return changed_rows(verb, result.rows_affected, result.last_insert_rowid)


def _changes_todos(statement: SqlStatement) -> bool:
    if statement.query_type == "query" and main_verb(statement.query) not in VERBS:
        return False
    # Names may be quoted.
    return not TODO_TABLES.isdisjoint(re.findall(r"\w+", statement.query.lower()))
