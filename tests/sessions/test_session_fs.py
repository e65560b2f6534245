"""Sessions in the virtual file system of a client: nothing is on our disk, nothing acknowledged is lost."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest

from jumpseat_client import Client, PermissionRequest, RpcError, Session, approve_all, connect_stdio, connect_tcp
from jumpseat_protocol.events import SessionError, SessionIdle, SessionTodosChanged, ToolExecutionComplete
from jumpseat_protocol.permissions import PermissionDecision
from jumpseat_protocol.sessions import ProviderConfig
from tests.support.forked import executable
from tests.support.server import running_server
from tests.support.virtual_disk import ROOT, VirtualDisk, crash, unknown

pytestmark = pytest.mark.anyio

BIG = "x" * 60_000


def scripted(*turns: dict[str, Any]) -> ProviderConfig:
    return ProviderConfig(type="scripted", script={"turns": list(turns)})


def calling(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


@pytest.fixture
def disk() -> VirtualDisk:
    return VirtualDisk()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@asynccontextmanager
async def server(disk: VirtualDisk, home: Path, *, sqlite: bool = False) -> AsyncGenerator[Client]:
    """Run a server, whose client offers ``disk``."""
    async with connect_stdio([executable()], env={"COPILOT_HOME": str(home)}, cwd=home.parent) as client:
        await disk.offer(client, sqlite=sqlite)
        yield client


async def create(client: Client, *turns: dict[str, Any], **options: Any) -> Session:
    return await client.create_session(provider=scripted(*turns), on_permission=approve_all, **options)


def logged(disk: VirtualDisk, session: Session) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in disk.text(session.id, "events.jsonl").splitlines()]


def stored_on(folder: Path) -> list[str]:
    """Return the files below a folder that hold anything of a session."""
    found = [os.path.join(parent, name) for parent, _, names in os.walk(folder) for name in names]
    return [name for name in found if "session" in name or b"secret-word" in Path(name).read_bytes()]


async def test_a_session_leaves_nothing_on_our_disk_and_goes_on_in_another_server(
    disk: VirtualDisk, home: Path
) -> None:
    async with server(disk, home, sqlite=True) as client:
        turns = (
            calling("sql", query="INSERT INTO todos (id, title) VALUES ('1', 'secret-word')"),
            {"text": "secret-word 1"},
            {"text": "a summary"},
        )
        session = await create(client, *turns, enable_file_change_tracking=True)
        assert session.workspace_path == ROOT
        assert await session.ask("secret-word") == "secret-word 1"
        await session.request("session.plan.update", content="# secret-word")
        await session.request("session.workspaces.createFile", path="a/b.txt", content="secret-word")
        await session.request("session.history.compact")
        await session.detach()
    assert stored_on(home) == []
    assert disk.names(session.id) == [
        "checkpoints/001-conversation-so-far.md",
        "checkpoints/index.md",
        "events.jsonl",
        "files/a/b.txt",
        "options.json",
        "plan.md",
        "workspace.yaml",
    ]
    assert f'id: "{session.id}"' in disk.text(session.id, "workspace.yaml")

    async with server(disk, home, sqlite=True) as client:
        assert await client.list_sessions() == []
        resumed = await client.resume_session(session.id, provider=scripted({"text": "again"}))
        assert await resumed.ask("more") == "again"
        assert (await resumed.request("session.plan.read"))["content"] == "# secret-word"
        assert (await resumed.request("session.workspaces.listFiles"))["files"] == ["a/b.txt"]
        todos = await resumed.request("session.plan.readSqlTodos")
        assert [row["title"] for row in todos["rows"]] == ["secret-word"]
        assert [event.type for event in await resumed.messages()].count("user.message") == 2
    assert stored_on(home) == []


async def test_a_session_with_an_id_that_no_folder_can_have_is_resumed_from_its_client(
    disk: VirtualDisk, home: Path
) -> None:
    async with server(disk, home) as client:
        session = await create(client, {"text": "one"})
        await session.ask("hi")
        await session.detach()
    # Other programs may have stored it.
    disk.files["team/one"] = disk.files.pop(session.id)
    async with server(disk, home) as client:
        resumed = await client.resume_session("team/one", provider=scripted({"text": "one"}, {"text": "two"}))
        assert await resumed.ask("more") == "two"


async def test_a_copy_of_a_session_is_stored_by_the_client_and_independent(disk: VirtualDisk, home: Path) -> None:
    rows = "INSERT INTO odd VALUES (1, 'it''s', x'00ff', 1.5, NULL)"
    async with server(disk, home, sqlite=True) as client:
        turns = (
            calling("sql", query="INSERT INTO todos (id, title) VALUES ('1', 'secret-word')"),
            calling("sql", query=f'CREATE TABLE odd (a, "b c", d, e, f); CREATE INDEX i ON odd (a); {rows}'),
            {"text": "one"},
            {"text": "two"},
        )
        session = await create(client, *turns)
        await session.ask("first")
        await session.request("session.plan.update", content="# secret-word")
        await session.request("session.workspaces.createFile", path="a/b.txt", content="secret-word")
        assert await session.ask("second") == "two"
        second = [event for event in await session.messages() if event.type == "user.message"][1]
        params = {"sessionId": session.id, "toEventId": second.id, "name": "Branch"}
        forked = await client.request("sessions.fork", params)
        whole = await client.request("sessions.fork", {"sessionId": session.id})
        copy = await client.resume_session(forked["sessionId"], provider=scripted(*turns[:3], {"text": "on"}))
        assert await copy.ask("third") == "on"
        assert [event.type for event in await copy.messages()].count("user.message") == 2
        assert (await copy.request("session.plan.read"))["content"] == "# secret-word"
        assert await copy.request("session.workspaces.readFile", path="a/b.txt") == {"content": "secret-word"}
        assert await copy.request("session.name.get") == {"name": "Branch"}
        assert [event.type for event in await session.messages()].count("user.message") == 2
        await session.detach()
        # A session that is not open is copied, too.
        again = await client.request("sessions.fork", {"sessionId": session.id})
        for copied in (forked["sessionId"], whole["sessionId"], again["sessionId"]):
            dump = list(disk.databases[copied].iterdump())
            assert dump == list(disk.databases[session.id].iterdump())
            assert "secret-word" in "".join(dump)
        assert [logged(disk, session)[0]["data"].pop("sessionId")] == [session.id]

        # A client that fails has no half of a copy.
        async def fail(method: str, params: dict[str, Any]) -> Any:
            is_log = method == "writeFile" and "events.jsonl" in params["path"]
            return unknown("full") if is_log and params["sessionId"] not in (session.id, copy.id) else None

        known, disk.before = {*disk.files}, fail
        with pytest.raises(RpcError, match="cannot copy the session"):
            await client.request("sessions.fork", {"sessionId": session.id})
        assert [name for name in disk.files if name not in known and disk.files[name]] == []
    assert stored_on(home) == []


async def test_the_events_of_a_run_are_stored_before_it_is_idle(disk: VirtualDisk, home: Path) -> None:
    async with server(disk, home) as client:
        session = await create(client, {"text": "one"}, {"text": "two"})
        for prompt in ("first", "second"):
            await session.ask(prompt)
            assert [event["data"]["content"] for event in logged(disk, session) if event["type"] == "user.message"][
                -1
            ] == prompt
            assert logged(disk, session)[-1]["type"] == "assistant.turn_end"


async def results(session: Session) -> list[ToolExecutionComplete]:
    """Return the results of all tool calls."""
    payloads = [event.payload for event in await session.messages()]
    return [payload for payload in payloads if isinstance(payload, ToolExecutionComplete)]


async def test_a_large_output_is_stored_by_the_client_and_can_be_viewed(disk: VirtualDisk, home: Path) -> None:
    async with server(disk, home) as client:
        await disk.offer(client, cwd=str(home.parent))
        session = await create(client, calling("bash", command=f"printf '{BIG}'"), {"text": "done"})
        await session.ask("print")
        (name,) = (name for name in disk.names(session.id) if name.startswith("temp/"))
        assert disk.text(session.id, name).startswith(BIG)
        (result,) = await results(session)
        assert result.result is not None
        assert f"Saved to: {ROOT}/{name}" in result.result.content

        # No permission is asked for: the client has the file itself.
        viewed = await client.create_session(
            provider=scripted(calling("view", path=f"{ROOT}/{name}"), {"text": "seen"})
        )
        disk.files[viewed.id][f"{ROOT}/{name}"] = "what was saved"
        await viewed.ask("look")
        (result,) = await results(viewed)
        assert result.result is not None
        assert "1. what was saved" in result.result.content
    assert stored_on(home) == []


async def test_the_file_tools_work_on_the_files_that_the_client_has(disk: VirtualDisk, home: Path) -> None:
    notes = f"{ROOT}/files/deep/notes.md"
    async with server(disk, home) as client:
        await disk.offer(client, cwd=str(home.parent))
        session = await create(
            client,
            calling("create", path=notes, file_text="alpha\nbeta\n"),
            calling("edit", path=notes, old_str="beta", new_str="gamma"),
            calling("grep", **{"pattern": "a$", "path": notes, "output_mode": "content", "-n": True}),
            calling("grep", pattern="gam", path=ROOT, glob="*.md"),
            calling("glob", pattern="files/**/*.md", path=ROOT),
            calling("edit", path=f"{ROOT}/plan.md", old_str="First", new_str="Then"),
            calling("create", path=notes, file_text="again"),
            calling("edit", path=f"{ROOT}/files/none.md", old_str="a", new_str="b"),
            calling("create", path=f"{ROOT}/files/../events.jsonl/x", file_text="{}"),
            calling("edit", path=f"{ROOT}/workspace.yaml", old_str="id", new_str="no"),
            calling("grep", pattern="(", path=ROOT),
            calling("apply_patch", input=f"*** Update File: {notes}\n-alpha\n+first\n*** Add File: {notes}.2\n+x"),
            calling("apply_patch", input=f"*** Add File: {notes}.3\n+x\n*** Delete File: {ROOT}/workspace.yaml"),
            calling(
                "apply_patch", input=f"*** Update File: {notes}\n*** Move to: {ROOT}/files/moved.md\n-first\n+1st"
            ),
            calling("apply_patch", input=f"*** Delete File: {notes}.2\n*** Delete File: {ROOT}/plan.md"),
            {"text": "done"},
        )
        await client.request("session.plan.update", {"sessionId": session.id, "content": "First this."})
        await session.ask("work")
        plan = await client.request("session.plan.read", {"sessionId": session.id})
        outcomes = [
            result.result.content if result.result is not None else result.error and result.error.message
            for result in await results(session)
        ]
        assert disk.text(session.id, "files/moved.md") == "1st\ngamma\n"
        assert [name for name in disk.names(session.id) if name.startswith("files/")] == ["files/moved.md"]
        assert "no:" not in disk.text(session.id, "workspace.yaml")
    assert plan["content"] is None
    assert outcomes == [
        f"Created file {notes} with 11 characters",
        f"File {notes} updated with changes.",
        f"{notes}:1:alpha\n{notes}:2:gamma",
        notes,
        notes,
        f"File {ROOT}/plan.md updated with changes.",
        f"Path {notes} already exists. Use edit to change it, or choose another path.",
        f"Path {ROOT}/files/none.md is not a file. Give the path of a text file.",
        f"{ROOT}/files/../events.jsonl/x cannot be changed: only plan.md and files in files/ can",
        f"{ROOT}/workspace.yaml cannot be changed: only plan.md and files in files/ can",
        "Pattern '(' is not a valid regular expression: missing ), unterminated subpattern at position 0.",
        f"Changed {notes}.\nCreated {notes}.2.",
        f"{ROOT}/workspace.yaml cannot be changed: only plan.md and files in files/ can\nNo file was changed.",
        f"Moved {notes} to {ROOT}/files/moved.md.",
        f"Deleted {notes}.2.\nDeleted {ROOT}/plan.md.",
    ]
    assert not await anyio.Path(ROOT).exists()


async def test_a_file_of_the_client_that_changes_while_the_question_is_open_is_left(
    disk: VirtualDisk, home: Path
) -> None:
    notes = f"{ROOT}/files/notes.md"

    async with server(disk, home) as client:
        await disk.offer(client, cwd=str(home.parent))

        async def approve(request: PermissionRequest) -> PermissionDecision:
            text = disk.files[session.id].get(notes, "")
            disk.files[session.id][notes] = f"{text}line {len(text)}\n"
            return await approve_all(request)

        session = await client.create_session(
            provider=scripted(
                calling("create", path=notes, file_text="alpha\n"),
                calling("edit", path=notes, old_str="line 0", new_str="less"),
                calling("apply_patch", input=f"*** Update File: {notes}\n-line 0\n+less\n"),
                calling("apply_patch", input=f"*** Delete File: {notes}\n"),
                {"text": "done"},
            ),
            on_permission=approve,
        )
        await session.ask("work")
        outcomes = [result.error and result.error.message for result in await results(session)]
        assert disk.text(session.id, "files/notes.md") == "line 0\nline 7\nline 14\nline 22\n"
    assert [("after permission" in (text or ""), "since permission" in (text or "")) for text in outcomes] == [
        (True, False), (False, True), (False, True), (False, True)
    ]  # fmt: skip


async def test_statements_that_reach_beyond_the_database_are_not_sent(disk: VirtualDisk, home: Path) -> None:
    async with server(disk, home, sqlite=True) as client:
        session = await create(
            client,
            calling("sql", query="ATTACH '/etc/passwd' AS other"),
            calling("sql", query="CREATE TABLE t (n); INSERT INTO t VALUES (1); INSERT INTO nowhere VALUES (2)"),
            calling("sql", query="SELECT count(*) AS found FROM sqlite_master WHERE name = 't'"),
            calling("sql", query="UPDATE todos SET status = 'done'"),
            {"text": "done"},
        )
        changed: list[SessionTodosChanged] = []
        async with session.events() as events:
            await session.send("go")
            async for event in events:
                if isinstance(event.payload, SessionTodosChanged):
                    changed.append(event.payload)
                if isinstance(event.payload, SessionIdle):
                    break
        found = await results(session)
        texts = [data.result.content if data.result is not None else "" for data in found]
    assert "not available here" in str(found[0].error)
    assert not any("ATTACH" in params.get("query", "") for _, params in disk.asked)
    # The three statements are one transaction.
    assert "nothing was changed" in str(found[1].error)
    assert texts[2] == "found\n0"
    assert len(changed) == 1


async def test_without_a_database_of_the_client_the_model_has_no_sql_tool(disk: VirtualDisk, home: Path) -> None:
    async with server(disk, home) as client:
        session = await create(client, {"text": "hi"})
        tools = await session.request("session.tools.getCurrentMetadata")
        assert "sql" not in [tool["name"] for tool in tools["tools"]]
        assert await session.request("session.plan.readSqlTodos") == {"rows": []}


@pytest.mark.parametrize(
    ("method", "answer", "reason"),
    [
        ("exists", crash("boom"), "sessionFs.exists of '/state/events.jsonl' failed: boom"),
        ("exists", {"exists": "maybe"}, "could not be read"),
        (
            "mkdir",
            unknown("no folders"),
            "session construction failed: sessionFs.mkdir of",
        ),
        ("writeFile", unknown("disk full"), "session construction failed: sessionFs.writeFile of"),
        ("appendFile", 7, "could not be read"),
    ],
)
async def test_a_client_that_fails_while_a_session_is_created_gets_no_session(
    disk: VirtualDisk, home: Path, method: str, answer: Any, reason: str
) -> None:
    async def fail(asked: str, _params: dict[str, Any]) -> Any:
        if asked != method:
            return None
        if isinstance(answer, Exception):
            raise answer
        return answer

    async with server(disk, home) as client:
        disk.before = fail
        with pytest.raises(RpcError, match=reason):
            await create(client, session_id="s-1")
        disk.before = None
        with pytest.raises(RpcError, match="not found"):
            await client.request("session.send", {"sessionId": "s-1", "prompt": "hi"})
        assert await (await create(client, {"text": "now"}, session_id="s-1")).ask("hi") == "now"


async def test_a_disk_that_is_full_is_announced_once_and_everything_is_stored_when_it_is_not_any_more(
    disk: VirtualDisk, home: Path
) -> None:
    full = True

    async def fail(method: str, _params: dict[str, Any]) -> Any:
        return unknown("disk full") if full and method == "appendFile" else None

    async with server(disk, home) as client:
        session = await create(client, {"text": "one"}, {"text": "two"})
        disk.before = fail
        async with session.events() as events:
            for prompt in ("first", "second"):
                await session.send(prompt)
            kinds: list[str] = []
            async for event in events:
                if isinstance(event.payload, SessionError):
                    assert event.payload.error_type == "persistence"
                    assert "disk full" in event.payload.message
                kinds.append(event.type)
                if event.type == "session.idle" and kinds.count("assistant.message") == 2:
                    break
            assert kinds.count("session.error") == 1
        with pytest.raises(RpcError, match="disk full"):
            await session.request("session.plan.update", content="plan")
        full = False
        await session.request("session.plan.update", content="plan")
        announced = [event.id for event in await session.messages()]
        await session.detach()
        assert [event["id"] for event in logged(disk, session)] == announced


@pytest.mark.parametrize("stored", ["nothing", "all", "a part"])
async def test_an_append_whose_answer_is_lost_is_stored_exactly_once(
    disk: VirtualDisk, home: Path, stored: str
) -> None:
    lost = True

    async def lose(method: str, params: dict[str, Any]) -> Any:
        nonlocal lost
        if method != "appendFile" or not lost:
            return None
        lost = False
        content = params["content"]
        kept = {"nothing": 0, "all": len(content), "a part": len(content) // 2}[stored]
        files = disk.files[params["sessionId"]]
        files[params["path"]] = files.get(params["path"], "") + content[:kept]
        raise crash("the answer is lost")

    async with server(disk, home) as client:
        session = await create(client, {"text": "é one"}, {"text": "two"})
        disk.before = lose
        await session.ask("first")
        await session.ask("second")
        assert not lost
        assert [event["id"] for event in logged(disk, session)] == [event.id for event in await session.messages()]


async def test_a_client_that_never_answers_delays_nothing_but_its_own_session(
    disk: VirtualDisk, home: Path
) -> None:
    stuck = ""
    asked = anyio.Event()

    async def hang(method: str, params: dict[str, Any]) -> Any:
        if params["sessionId"] == stuck and method == "appendFile":
            asked.set()
            await anyio.sleep_forever()

    async with server(disk, home) as client:
        slow, quick = await create(client, {"text": "slow"}), await create(client, {"text": "quick"})
        stuck = slow.id
        disk.before = hang
        await slow.send("hi")
        await asked.wait()
        assert await quick.ask("hi") == "quick"
        await slow.abort()


async def test_a_session_is_stored_by_the_client_that_comes_back(disk: VirtualDisk, home: Path) -> None:
    async with running_server(home.parent, tcp=True) as process:
        port = process.port
        assert port is not None
        async with connect_tcp("127.0.0.1", port) as first:
            await disk.offer(first)
            session = await create(first, {"text": "one", "delay_ms": 1}, {"text": "two"})
            await session.ask("first")
            stored = len(logged(disk, session))
            disk.before = _never
            await session.request("session.name.set", name="Renamed")
        disk.before = None
        async with connect_tcp("127.0.0.1", port) as second:
            await disk.offer(second)
            again = await second.resume_session(session.id)
            assert await again.ask("second") == "two"
            assert len(logged(disk, again)) > stored
            assert 'name: "Renamed"' in disk.text(session.id, "workspace.yaml")


async def _never(method: str, _params: dict[str, Any]) -> Any:
    raise crash(f"{method} is not possible now")


async def test_users_of_one_server_have_file_systems_of_their_own(tmp_path: Path) -> None:
    ours, theirs = VirtualDisk(), VirtualDisk()
    async with running_server(tmp_path, tcp=True) as process:
        port = process.port
        assert port is not None
        async with connect_tcp("127.0.0.1", port) as one, connect_tcp("127.0.0.1", port) as two:
            await ours.offer(one)
            session = await create(one, {"text": "mine"})
            await theirs.offer(two)
            other = await create(two, {"text": "yours"})
            assert [await session.ask("hi"), await other.ask("hi")] == ["mine", "yours"]
            assert (list(ours.files), list(theirs.files)) == ([session.id], [other.id])
            await session.detach()
            with pytest.raises(RpcError, match="not found"):
                await two.resume_session(session.id)


async def test_a_file_system_is_refused_beside_sessions_on_the_disk(disk: VirtualDisk, home: Path) -> None:
    async with connect_stdio([executable()], env={"COPILOT_HOME": str(home)}, cwd=home.parent) as client:
        session = await create(client)
        with pytest.raises(RpcError, match="before creating any"):
            await disk.offer(client)
        await session.detach()
        await disk.offer(client)


async def test_a_rewind_and_a_deletion_change_what_the_client_has_stored(disk: VirtualDisk, home: Path) -> None:
    async with server(disk, home) as client:
        session = await create(client, {"text": "one"}, {"text": "two"})
        await session.ask("first")
        await session.ask("second")
        points = await session.request("session.history.listRewindPoints")
        await session.request("session.history.rewind", eventId=points["points"][1]["eventId"], mode="conversation")
        await session.request("session.plan.update", content="plan")
        assert [event["data"]["content"] for event in logged(disk, session) if event["type"] == "user.message"] == [
            "first"
        ]
        await session.detach()
        await client.delete_session(session.id)
        assert disk.names(session.id) == []


@pytest.mark.parametrize(
    "params",
    [
        {"initialCwd": "/", "sessionStatePath": "/s", "conventions": "odd"},
        {"initialCwd": "/", "conventions": "posix"},
        {"initialCwd": "/", "sessionStatePath": "", "conventions": "posix"},
        {"initialCwd": "/", "sessionStatePath": "/s", "conventions": "posix", "capabilities": {"sqlite": "yes"}},
    ],
)
async def test_an_invalid_registration_is_refused(home: Path, params: dict[str, Any]) -> None:
    async with connect_stdio([executable()], env={"COPILOT_HOME": str(home)}, cwd=home.parent) as client:
        with pytest.raises(RpcError) as raised:
            await client.request("sessionFs.setProvider", params)
        assert raised.value.code == -32602 or "empty" in raised.value.message


async def test_what_is_stored_when_the_server_is_killed_can_be_resumed(disk: VirtualDisk, home: Path) -> None:
    stored = anyio.Event()

    async def watch(method: str, params: dict[str, Any]) -> None:
        if method == "appendFile" and "tool.execution_start" in params["content"]:
            stored.set()

    disk.before = watch
    async with running_server(home.parent, tcp=True) as process:
        assert process.port is not None
        async with connect_tcp("127.0.0.1", process.port) as client:
            await disk.offer(client, cwd=str(home.parent))
            session = await create(client, calling("bash", command="sleep 60"))
            await session.send("wait")
            await stored.wait()
            await client.ping()
            await process.kill()
    async with server(disk, home) as client:
        resumed = await client.resume_session(session.id, provider=scripted({}, {"text": "back"}))
        assert await resumed.ask("go on") == "back"
        (result,) = await results(resumed)
        assert not result.success
