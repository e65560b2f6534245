"""The ``sql`` tool over the real wire, and the todos that clients read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.server import Wire, calls, running_server, scripted

pytestmark = pytest.mark.anyio

NOTED = (
    "INSERT INTO todos (id, title, status) VALUES ('a', 'First', 'done');"
    "INSERT INTO todos (id, title, description) VALUES ('b', 'Second', 'Later');"
    "INSERT INTO todo_deps VALUES ('b', 'a');"
)


async def todos(wire: Wire, session: str) -> list[tuple[Any, ...]]:
    found = await wire.call("session.plan.readSqlTodosWithDependencies", {"sessionId": session})
    rows = await wire.call("session.plan.readSqlTodos", {"sessionId": session})
    assert rows == {"rows": found["rows"]}
    return [
        *((row["id"], row["title"], row["status"], row.get("description")) for row in found["rows"]),
        *((dependency["todoId"], dependency["dependsOn"]) for dependency in found["dependencies"]),
    ]


NOTED_ROWS = [("a", "First", "done", None), ("b", "Second", "pending", "Later"), ("b", "a")]


async def test_clients_are_notified_of_the_todos_of_a_model(tmp_path: Path) -> None:
    script = scripted(
        calls("sql", query=NOTED, description="Note todos"),
        calls("sql", "call-2", query="SELECT count(*) AS n FROM todos"),
        calls("sql", "call-3", query="nonsense"),
        {"text": "Noted."},
    )
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(script)
        assert await todos(wire, session) == []
        events = await wire.prompt(session)
        assert await todos(wire, session) == NOTED_ROWS
        created = (await wire.call("session.plan.readSqlTodos", {"sessionId": session}))["rows"][0]["createdAt"]
        assert len(created) == len("2026-01-01 00:00:00")
        assert (server.log_of(session).parent / "session.db").is_file()
    kinds = [event["type"] for event in events]
    assert kinds.count("session.todos_changed") == 1
    assert kinds.index("session.todos_changed") < kinds.index("tool.execution_complete")
    assert "permission.requested" not in kinds
    (changed,) = [event for event in events if event["type"] == "session.todos_changed"]
    assert (changed["data"], changed["ephemeral"]) == ({}, True)
    first, second, third = [event["data"] for event in events if event["type"] == "tool.execution_complete"]
    assert first["result"]["content"].startswith("Executed 3 statement(s):\n\n1. INSERT\n   1 row(s) inserted.")
    assert second["result"]["content"] == "n\n2"
    assert third["error"]["message"] == 'near "nonsense": syntax error.'
    tool_requests = [event["data"]["toolRequests"] for event in events if event["type"] == "assistant.message"]
    assert tool_requests[0][0]["intentionSummary"] == "Note todos"


async def test_todos_survive_the_process_and_are_copied_by_a_fork(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(scripted(calls("sql", query=NOTED), {"text": "ok"}), sessionId="one")
        await server.wire.prompt(session)
    async with running_server(tmp_path) as server:
        wire = server.wire
        await wire.call("session.resume", {"sessionId": "one"})
        assert await todos(wire, "one") == NOTED_ROWS
        fork = (await wire.call("sessions.fork", {"sessionId": "one"}))["sessionId"]
        await wire.call("session.resume", {"sessionId": fork})
        assert await todos(wire, fork) == NOTED_ROWS
        await wire.call("session.delete", {"sessionId": fork})
        assert await todos(wire, "one") == NOTED_ROWS


async def test_a_session_without_todos_has_no_database(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(scripted({"text": "hi"}))
        await server.wire.prompt(session)
        assert await todos(server.wire, session) == []
        assert not (server.log_of(session).parent / "session.db").exists()


async def test_an_abort_ends_an_endless_statement(tmp_path: Path) -> None:
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(scripted(calls("sql", query=f"{NOTED}{endless}"), {"text": "x"}))
        since = len(wire.messages)
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        await wire.event("tool.execution_start", session=session)
        await wire.call("session.abort", {"sessionId": session})
        await wire.event("session.idle", session=session, since=since)
        assert await todos(wire, session) == []


async def test_a_client_tool_replaces_the_built_in_one_only_if_it_declares_that(tmp_path: Path) -> None:
    tool = {"name": "sql", "description": "Mine.", "parameters": {"type": "object"}}
    async with running_server(tmp_path) as server:
        error = await server.wire.error_of("session.create", {"provider": scripted(), "tools": [tool]})
        assert "tool 'sql' has the name of a built-in tool" in error["message"]
        await server.wire.create(scripted(), tools=[{**tool, "overridesBuiltInTool": True}])
        # A tool that the session does not have cannot conflict.
        await server.wire.create(scripted(), tools=[{**tool, "name": "web_search"}, {**tool, "name": "skill"}])
