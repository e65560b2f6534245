"""Copies of databases in virtual file systems: by SQL, because a client offers nothing else."""

from __future__ import annotations

from typing import Any, Final

from jumpseat.errors import StoreError
from jumpseat.store.session_fs.file_system import FileSystem

ROWS: Final = 200
"""The number of rows that one request copies."""
MOST_ROWS: Final = 1_000_000
"""Limit on the rows of one table, because a client may return rows without end."""


async def copy_database(source: FileSystem, target: FileSystem) -> None:
    """Copy the tables, rows, indexes, views and triggers of a session's database, if there is one.

    Raises:
        StoreError: the client fails, or returns what is no schema.
    """
    if not await source.has_database():
        return
    found = await source.query(
        "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        " ORDER BY type <> 'table', rowid",
        "query",
    )
    tables = [entry for entry in found.rows if entry.get("type") == "table"]
    for entry in tables:
        await target.query(_text(entry, "sql"), "exec")
        await _copy_rows(source, target, _text(entry, "name"))
    for entry in found.rows:
        if entry not in tables:
            await target.query(_text(entry, "sql"), "exec")


async def _copy_rows(source: FileSystem, target: FileSystem, table: str) -> None:
    name = _quoted(table)
    described = await source.query(f"SELECT name FROM pragma_table_info({_literal(table)})", "query")  # noqa: S608
    columns = [_quoted(_text(column, "name")) for column in described.rows]
    # As literals of SQL, the values survive JSON whatever their types are.
    values = ", ".join(f"quote({column}) AS c{number}" for number, column in enumerate(columns))
    for start in range(0, MOST_ROWS, ROWS):
        page = f"SELECT {values} FROM {name} LIMIT {ROWS} OFFSET {start}"  # noqa: S608
        rows = (await source.query(page, "query")).rows[:ROWS]
        if rows:
            literals = (", ".join(_text(row, f"c{number}") for number in range(len(columns))) for row in rows)
            lines = ", ".join(f"({line})" for line in literals)
            await target.query(f"INSERT INTO {name} ({', '.join(columns)}) VALUES {lines}", "run")  # noqa: S608
        if len(rows) < ROWS:
            return
    raise StoreError(f"the table {table[:100]!r} has more than {MOST_ROWS} rows")


def _text(row: dict[str, Any], name: str) -> str:
    value = row.get(name)
    if not isinstance(value, str):
        raise StoreError(f"the client's answer about the database has no {name!r}")
    return value


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
