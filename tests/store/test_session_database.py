"""The database of a session: results of statements, and their limits."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from jumpseat.errors import StoreError
from jumpseat.store.session import database as session_database
from jumpseat.store.session.database import SessionDatabase, TodoRows, split_statements
from tests.support.limits import WAIT_S

pytestmark = pytest.mark.anyio

ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"


@pytest.fixture
def database(tmp_path: Path) -> SessionDatabase:
    (tmp_path / "session").mkdir()
    return SessionDatabase(tmp_path / "session" / "session.db")


async def failed(database: SessionDatabase, query: str) -> str:
    with pytest.raises(StoreError) as caught:
        await database.run(query)
    return str(caught.value)


async def test_todos_can_be_written_and_read_back(database: SessionDatabase) -> None:
    assert await database.todos() == TodoRows()
    assert not database.path.exists()
    query = (
        "INSERT INTO todos (id, title, status) VALUES ('alpha', 'First; todo', 'pending');\n"
        "INSERT INTO todos (id, title) VALUES ('beta', 'Second');\n"
        "INSERT INTO todo_deps (todo_id, depends_on) VALUES ('beta', 'alpha');"
    )
    assert await database.run(query) == (
        "Executed 3 statement(s):\n\n"
        "1. INSERT\n   1 row(s) inserted. Last inserted row ID: 1.\n\n"
        "2. INSERT\n   1 row(s) inserted. Last inserted row ID: 2.\n\n"
        "3. INSERT\n   1 row(s) inserted. Last inserted row ID: 1.",
        True,
    )
    found = await database.todos()
    assert [(row["id"], row["title"], row["status"]) for row in found.todos] == [
        ("alpha", "First; todo", "pending"),
        ("beta", "Second", "pending"),
    ]
    assert all(row["created_at"] for row in found.todos)
    assert found.dependencies == [{"todo_id": "beta", "depends_on": "alpha"}]


@pytest.mark.parametrize(
    ("query", "text", "todos_changed"),
    [
        ("INSERT INTO todos (id, title) VALUES ('c', 'C')", "1 row(s) inserted. Last inserted row ID: 3.", True),
        ("UPDATE todos SET status = 'done'", "2 row(s) updated.", True),
        ("UPDATE todos SET status = 'done' WHERE id = 'none'", "0 row(s) updated.", False),
        ("DELETE FROM todos WHERE id = 'a';", "1 row(s) deleted.", True),
        ("SELECT id, title FROM todos", "id | title\na | A\nb | B", False),
        ("SELECT id FROM todos WHERE 0", "No rows. Columns: id", False),
        (
            "SELECT 'x\ny\\', NULL AS n, x'0102' AS b, 1.5 AS f",
            "'x\ny\\' | n | b | f\nx\\ny\\\\ | NULL | <2 bytes> | 1.5",
            False,
        ),
        ("CREATE TABLE t (x)", "Schema operation completed successfully.", False),
        ("DROP TABLE todos", "Schema operation completed successfully.", True),
        (
            "WITH w AS (SELECT 'delete' AS a) INSERT INTO todos (id, title) SELECT a, a FROM w",
            "1 row(s) inserted. Last inserted row ID: 3.",
            True,
        ),
        ("INSERT INTO todos (id, title) VALUES ('c', 'C') RETURNING id, status", "id | status\nc | pending", True),
        ("REPLACE INTO todos (id, title) VALUES ('a', 'Z')", "1 row(s) inserted. Last inserted row ID: 3.", True),
        ("-- what\n/* is; it */ SELECT ';' AS s -- now;", "s\n;", False),
        ("SELECT name FROM pragma_table_info('todo_deps')", "name\ntodo_id\ndepends_on", False),
        ("CREATE VIRTUAL TABLE f USING fts5(x)", "Schema operation completed successfully.", False),
        (
            "BEGIN; UPDATE todos SET status = 'x' WHERE id = 'a'; COMMIT",
            "Executed 3 statement(s):\n\n"
            "1. BEGIN\n   Not needed: the statements of a call run as one transaction.\n\n"
            "2. UPDATE\n   1 row(s) updated.\n\n"
            "3. COMMIT\n   Not needed: the statements of a call run as one transaction.",
            True,
        ),
    ],
)
async def test_statements_return_their_results(
    database: SessionDatabase, query: str, text: str, todos_changed: bool
) -> None:
    await database.run("INSERT INTO todos (id, title) VALUES ('a', 'A'), ('b', 'B')")
    assert await database.run(query) == (text, todos_changed)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("", "The query contains no statement."),
        (" ; -- nothing\n;", "The query contains no statement."),
        ("nonsense", 'near "nonsense": syntax error.'),
        ("INSERT INTO nope VALUES (1)", "no such table: nope."),
        ("INSERT INTO todos (id) VALUES ('x')", "NOT NULL constraint failed: todos.title."),
        ("SELECT '\0'", "the query contains a null character."),
        ("SELECT zeroblob(100000000)", "string or blob too big."),
        ("SELECT 1" + " " * 300_000, "The query is longer than 262144 characters. Split it."),
        ("SELECT 1;" * 300, "The query has more than 200 statements. Split it."),
        (
            "CREATE TRIGGER t AFTER INSERT ON todos BEGIN " + "SELECT end;" * 300,
            "The query has a trigger with too many statements.",
        ),
        (
            "UPDATE todos SET title = 'x'; nonsense",
            'Statement 2 failed, and nothing was changed: near "nonsense": syntax error.',
        ),
    ],
)
async def test_a_failing_query_is_an_error_and_changes_nothing(
    database: SessionDatabase, query: str, reason: str
) -> None:
    await database.run("INSERT INTO todos (id, title) VALUES ('a', 'A')")
    assert await failed(database, query) == reason
    assert [row["title"] for row in (await database.todos()).todos] == ["A"]


@pytest.mark.parametrize(
    "query",
    [
        "ATTACH 'FOLDER/other.db' AS other",
        "VACUUM INTO 'FOLDER/other.db'",
        "PRAGMA journal_mode = OFF",
        "PRAGMA writable_schema = ON",
        "PRAGMA temp_store_directory = 'FOLDER'",
        "PRAGMA hard_heap_limit = 0",
        "SELECT * FROM pragma_database_list",
        "SELECT load_extension('x')",
        "SELECT writefile('FOLDER/other.db', 'x')",
        "SELECT readfile('/etc/passwd')",
        "SELECT fts3_tokenizer('simple', x'00')",
        "ROLLBACK",
        "DETACH main",
    ],
)
async def test_statements_have_access_to_the_session_database_only(database: SessionDatabase, query: str) -> None:
    folder = database.path.parent
    assert await failed(database, query.replace("FOLDER", str(folder)))
    assert {path.name for path in folder.iterdir()} == {"session.db"}


async def test_endless_statements_are_interrupted(
    database: SessionDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as limited:
        limited.setattr(session_database, "TIMEOUT_S", 0.25)
        assert await failed(database, ENDLESS) == "The query took longer than 0.25 s."
    assert (await database.run("SELECT 1"))[0] == "1\n1"


async def test_a_cancelled_call_leaves_no_running_thread(database: SessionDatabase) -> None:
    with anyio.move_on_after(0.25):
        await database.run(f"INSERT INTO todos (id, title) VALUES ('a', 'A'); {ENDLESS}")
    with anyio.fail_after(WAIT_S):
        # The transaction is rolled back before the next one begins.
        await database.run("INSERT INTO todos (id, title) VALUES ('b', 'B')")
    assert [row["id"] for row in (await database.todos()).todos] == ["b"]
    assert threading.active_count() < 20


async def test_the_size_of_the_file_and_of_results_is_limited(
    database: SessionDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_database, "MAX_BYTES", 200_000)
    numbers = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 2000)"
    fill = f"CREATE TABLE t (x); {numbers} INSERT INTO t SELECT zeroblob(1000) FROM c"
    assert await failed(database, fill) == (
        "Statement 2 failed, and nothing was changed: database or disk is full."
    )
    assert database.path.stat().st_size <= 200_000
    text, _ = await database.run(f"{numbers} SELECT x FROM c")
    assert text.splitlines()[-2:] == [
        "1000",
        "[Only the first 1000 rows are shown. Use LIMIT to select fewer.]",
    ]
    text, _ = await database.run(f"{numbers} SELECT x, hex(zeroblob(50000)) FROM c")
    assert len(text) < 300_000
    assert text.endswith("[Only the first 2 rows are shown. Use LIMIT to select fewer.]")


async def test_concurrent_calls_wait_for_each_other(database: SessionDatabase) -> None:
    async def note(number: int) -> None:
        await database.run(f"INSERT INTO todos (id, title) VALUES ('{number}', 'x')")

    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(note, number)
    assert len((await database.todos()).todos) == 8


async def test_tables_that_a_model_has_changed_do_not_break_the_todo_list(database: SessionDatabase) -> None:
    await database.run("DROP TABLE todos; CREATE TABLE todos (id, what); INSERT INTO todos VALUES (1, x'ff')")
    assert (await database.todos()).todos == [{"id": 1, "what": b"\xff"}]
    database.path.write_bytes(b"no database" * 100)
    assert await database.todos() == TodoRows()
    assert await failed(database, "SELECT 1") == "file is not a database."


async def test_a_late_statement_does_not_recreate_a_removed_session(tmp_path: Path) -> None:
    assert await failed(SessionDatabase(tmp_path / "gone" / "session.db"), "SELECT 1") == (
        "unable to open database file."
    )
    assert not (tmp_path / "gone").exists()


async def test_a_copy_holds_all_rows(database: SessionDatabase, tmp_path: Path) -> None:
    database.copy_to(tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()
    await database.run("INSERT INTO todos (id, title) VALUES ('a', 'A')")
    database.copy_to(tmp_path / "copy.db")
    with closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
        assert copy.execute("SELECT id FROM todos").fetchall() == [("a",)]


def test_queries_are_split_at_the_right_semicolons() -> None:
    trigger = "CREATE TRIGGER a AFTER INSERT ON t BEGIN SELECT 1; SELECT 2; END;"
    query = f"{trigger} select ';\"' ; /* c; */ create table \"a;b\" ([c;d], `e;f`) -- g;\n; 'it''s;' -- end;"
    assert list(split_statements(query)) == [
        trigger,
        "select ';\"' ;",
        '/* c; */ create table "a;b" ([c;d], `e;f`) -- g;\n;',
        "'it''s;' -- end;",
    ]
