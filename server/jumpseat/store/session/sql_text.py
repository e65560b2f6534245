"""SQL statements of a model, and their results as text, wherever the database lies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from jumpseat.errors import StoreError

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

# Strings, names and comments are one token each, so that a semicolon in them ends no statement.
_TOKEN: Final = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*.*?(?:\*/|\Z)|;|[^;'\"`\[/-]+|.", re.DOTALL
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
