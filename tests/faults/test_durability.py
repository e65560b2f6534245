"""Processes that are killed at any moment, damaged logs and full disks."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.events import data_of
from tests.support.model_server import ModelServer, Reply, event_stream
from tests.support.server import READABLE, JsonObject, RunningServer, Wire, calls, running_server, scripted

pytestmark = pytest.mark.anyio

INTERRUPTED = "The execution of this tool, or a previous tool was interrupted."
LOOKUP: JsonObject = {"name": "lookup", "skipPermission": True}


def persisted(events: list[JsonObject]) -> list[JsonObject]:
    return [event for event in events if not event.get("ephemeral")]


async def stored_events(wire: Wire, session: str) -> list[JsonObject]:
    return (await wire.call("session.getMessages", {"sessionId": session}))["events"]


def chunk(delta: JsonObject, finish: str | None = None) -> bytes:
    return (
        b"data: %s\n\n" % json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}).encode()
    )


def says(*pieces: str, ending: str = "end") -> Reply:
    done = [chunk({}, "stop"), b"data: [DONE]\n\n"] if ending == "end" else []
    return event_stream(*[chunk({"content": piece}) for piece in pieces], *done, ending=ending)


def asks_for(*wanted: tuple[str, str, JsonObject]) -> Reply:
    """Return an answer with some text and tool calls: (call id, name, arguments)."""
    tool_calls = [
        {
            "index": index,
            "id": call_id,
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for index, (call_id, name, arguments) in enumerate(wanted)
    ]
    return event_stream(
        chunk({"content": "Let me see."}),
        chunk({"tool_calls": tool_calls}),
        chunk({}, "tool_calls"),
        b"data: [DONE]\n\n",
    )


# --- killed processes ---------------------------------------------------------------------------------------------


async def kill_during_prompt(
    folder: Path, provider: ModelServer, until: Callable[[Wire], Awaitable[object]], **options: object
) -> tuple[str, list[JsonObject]]:
    """Run a prompt until ``until`` returns, then kill the server.

    Returns the session's id and the persisted events that its client has received.
    """
    async with running_server(folder) as server:
        session = await server.wire.create(openai(provider), model="m", streaming=True, **options)
        await server.wire.call("session.send", {"sessionId": session, "prompt": "go"})
        await until(server.wire)
        await server.kill()
        return session, persisted(server.wire.events(session))


def openai(provider: ModelServer) -> JsonObject:
    return {"type": "openai", "baseUrl": provider.url, "apiKey": "key"}


async def resume(
    folder: Path, provider: ModelServer, session: str, earlier: list[JsonObject], *, continue_pending: bool = False
) -> tuple[list[JsonObject], list[JsonObject]]:
    """Resume a killed session in a new process and send it another prompt.

    Returns the events stored directly after the resume, and the messages that the model received with the prompt.
    """
    async with running_server(folder) as server:
        params = {"sessionId": session, "provider": openai(provider), "model": "m"}
        await server.wire.call("session.resume", params | {"continuePendingWork": continue_pending})
        after = await stored_events(server.wire, session)
        assert after[: len(earlier)] == earlier
        chain = [None, *[event["id"] for event in after]]
        assert [event["parentId"] for event in after] == chain[:-1]
        provider.replies[:] = [says("here I am")]
        events = await server.wire.prompt(session, "still there?")
        assert data_of(events, "assistant.message")[0]["content"] == "here I am"
        assert (await stored_events(server.wire, session))[: len(after)] == after
    return after, provider.requests[-1].json["messages"]


def roles(messages: list[JsonObject]) -> list[str]:
    return [message["role"] for message in messages]


async def test_a_kill_after_the_first_delta_keeps_the_prompt_and_drops_the_partial_answer(tmp_path: Path) -> None:
    async with ModelServer(says("half an ", ending="hang")) as provider:

        async def until(wire: Wire) -> None:
            await wire.event("assistant.message_delta")

        session, events = await kill_during_prompt(tmp_path, provider, until)
        assert [event["type"] for event in events] == ["session.start", "user.message", "assistant.turn_start"]
        after, messages = await resume(tmp_path, provider, session, events)
        assert [event["type"] for event in after[len(events) :]] == ["session.resume"]
        assert roles(messages) == ["system", "user", "user"]


@pytest.mark.parametrize("continue_pending", [False, True])
async def test_a_kill_during_a_client_tool_leaves_one_interrupted_call(
    tmp_path: Path, continue_pending: bool
) -> None:
    async with ModelServer(asks_for(("call-1", "lookup", {"word": "ü"}))) as provider:

        async def until(wire: Wire) -> None:
            await wire.event("external_tool.requested")

        session, events = await kill_during_prompt(tmp_path, provider, until, tools=[LOOKUP])
        assert events[-1]["type"] == "external_tool.requested"
        after, messages = await resume(tmp_path, provider, session, events, continue_pending=continue_pending)
        completed = data_of(after, "tool.execution_complete")
        if not continue_pending:
            assert [(data["toolCallId"], data["error"]["message"]) for data in completed] == [
                ("call-1", INTERRUPTED)
            ]
        assert roles(messages) == ["system", "user", "assistant", "tool", "user"]
        assert messages[2]["tool_calls"][0]["function"] == {"name": "lookup", "arguments": '{"word": "\\u00fc"}'}
        assert (messages[3]["tool_call_id"], messages[3]["content"]) == ("call-1", INTERRUPTED)


async def test_after_a_kill_during_a_permission_request_nothing_runs(tmp_path: Path) -> None:
    async with ModelServer(asks_for(("call-1", "bash", {"command": "touch ran"}))) as provider:

        async def until(wire: Wire) -> None:
            await wire.event("permission.requested")

        session, events = await kill_during_prompt(tmp_path, provider, until, requestPermission=True)
        assert events[-1]["type"] == "permission.requested"
        _, messages = await resume(tmp_path, provider, session, events)
        assert roles(messages) == ["system", "user", "assistant", "tool", "user"]
        assert messages[3]["content"] == INTERRUPTED
        assert not (tmp_path / "ran").exists()


async def test_a_kill_during_a_command_leaves_one_interrupted_call(tmp_path: Path) -> None:
    async with ModelServer(asks_for(("call-1", "bash", {"command": "echo started; sleep 300"}))) as provider:

        async def until(wire: Wire) -> None:
            request = await wire.event("permission.requested")
            await approve(wire, request)
            await wire.event("tool.execution_partial_result")

        session, events = await kill_during_prompt(tmp_path, provider, until, requestPermission=True)
        assert events[-1]["type"] == "permission.completed"
        _, messages = await resume(tmp_path, provider, session, events)
        assert roles(messages) == ["system", "user", "assistant", "tool", "user"]
        assert messages[3]["content"] == INTERRUPTED


async def approve(wire: Wire, request: JsonObject) -> None:
    session = next(m for m in wire.messages if m.get("method") == "session.event")["params"]["sessionId"]
    params = {"sessionId": session, "requestId": request["data"]["requestId"], "result": {"kind": "approve-once"}}
    await wire.call("session.permissions.handlePendingPermissionRequest", params)


async def test_a_kill_between_two_results_keeps_one_and_interrupts_the_other(tmp_path: Path) -> None:
    both = asks_for(("slow", "lookup", {"n": 1}), ("quick", "lookup", {"n": 2}))
    async with ModelServer(both) as provider:

        async def until(wire: Wire) -> None:
            await wire.event("external_tool.requested", toolCallId="slow")
            request = await wire.event("external_tool.requested", toolCallId="quick")
            params = {
                "sessionId": request["data"]["sessionId"],
                "requestId": request["data"]["requestId"],
                "result": "two",
            }
            await wire.call("session.tools.handlePendingToolCall", params)
            await wire.event("tool.execution_complete", toolCallId="quick")

        session, events = await kill_during_prompt(tmp_path, provider, until, tools=[LOOKUP])
        after, messages = await resume(tmp_path, provider, session, events)
        completed = data_of(after, "tool.execution_complete")
        assert [(data["toolCallId"], data["success"]) for data in completed] == [("quick", True), ("slow", False)]
        assert roles(messages) == ["system", "user", "assistant", "tool", "tool", "user"]
        assert [(m["tool_call_id"], m["content"]) for m in messages[3:5]] == [
            ("slow", INTERRUPTED),
            ("quick", "two"),
        ]


async def test_a_killed_session_is_listed_with_its_prompt(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(scripted({"hang": True}))
        await server.wire.call("session.send", {"sessionId": session, "prompt": "the first words"})
        await server.wire.event("assistant.turn_start")
        await server.kill()
    async with running_server(tmp_path) as server:
        (sessions,) = (await server.wire.call("session.list", {}))["sessions"]
        assert sessions["sessionId"] == session
        assert (await server.wire.call("session.getLastId", {}))["sessionId"] == session


# --- damaged logs -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """Return the event loop, as for all tests, but with module scope."""
    return "asyncio"


@dataclass
class Finished:
    """A session with one prompt that was closed normally: its id, its log, and the events in the log."""

    id: str
    log: Path
    events: list[JsonObject]


@pytest.fixture(scope="module")
async def template(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    async with running_server(tmp_path_factory.mktemp("finished")) as server:
        session = await server.wire.create(scripted({"text": "one"}))
        await server.wire.prompt(session, "first")
        return Finished(session, server.log_of(session), await stored_events(server.wire, session))


@pytest.fixture
def past(template: Finished, tmp_path: Path) -> Finished:
    """Return a copy of a finished session in the home of this test."""
    folder = tmp_path / "home" / "session-state" / template.id
    shutil.copytree(template.log.parent, folder)
    return Finished(template.id, folder / "events.jsonl", template.events)


@asynccontextmanager
async def reopen(folder: Path, session: str) -> AsyncGenerator[tuple[RunningServer, list[JsonObject]]]:
    """Resume the session in a new process; yields the stored events without the resume.

    At the end the session must answer a prompt, whatever its log was like.
    """
    async with running_server(folder) as server:
        provider = {"type": "scripted", "script": {"turns": [{"text": "next"}], "after_last": "repeat"}}
        await server.wire.call("session.resume", {"sessionId": session, "provider": provider})
        events = await stored_events(server.wire, session)
        assert events[-1]["type"] == "session.resume"
        yield server, events[:-1]
        told = await server.wire.prompt(session, "second")
        assert data_of(told, "assistant.message")[0]["content"] == "next"
        assert data_of(told, "session.error") == []
        for event in [events[-1], *told]:
            assert event["parentId"] is None or uuid.UUID(event["parentId"])


@pytest.mark.parametrize(
    "torn", [b'{"id":"5", "type":"assistant.mess', b"\0\0\0\0", b'{"type":"abort"} x'], ids=repr
)
async def test_a_torn_last_line_is_removed_with_one_warning(tmp_path: Path, past: Finished, torn: bytes) -> None:
    session, path, before = past.id, past.log, past.events
    with path.open("ab") as log:
        log.write(torn)
    async with reopen(tmp_path, session) as (_, events):
        assert events[:-1] == before
        assert events[-1]["type"] == "session.warning"
        assert str(len(torn)) in events[-1]["data"]["message"]
    assert len(whole_lines(path)) == len(path.read_bytes().splitlines())
    async with reopen(tmp_path, session) as (_, events):
        assert len(data_of(events, "session.warning")) == 1


async def test_a_last_line_without_a_newline_is_kept(tmp_path: Path, past: Finished) -> None:
    session, path, before = past.id, past.log, past.events
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    async with reopen(tmp_path, session) as (_, events):
        assert events == before


GARBAGE = [b"not JSON", b"\xff\xfe\x00", b"", b"[]", b"null", b"{}", b'{"type": 5}', b'{"id": "x", "data": {}}']


async def test_garbage_in_the_middle_loses_only_its_lines(tmp_path: Path, past: Finished) -> None:
    session, path, before = past.id, past.log, past.events
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*lines[:2], *GARBAGE, *lines[2:]]))
    async with reopen(tmp_path, session) as (_, events):
        assert events == before


STRANGE: list[JsonObject] = [
    {"id": str(uuid.uuid4()), "type": "future.event", "data": {"deep": [{"x": None}]}, "new": True},
    {"id": str(uuid.uuid4()), "type": "user.message", "data": {"content": 5}},
    {"id": str(uuid.uuid4()), "type": "tool.execution_complete", "data": None},
    {"id": 7, "type": "session.start"},
    {"type": "assistant.message", "data": []},
    {"id": "", "type": "abort", "data": {}},
]


async def test_unknown_events_are_kept_and_not_interpreted(tmp_path: Path, past: Finished) -> None:
    session, path, before = past.id, past.log, past.events
    with path.open("ab") as log:
        log.write(b"".join(json.dumps(strange).encode() + b"\n" for strange in STRANGE))
    async with reopen(tmp_path, session) as (_, events):
        assert events == [*before, *STRANGE]


async def test_an_empty_log_is_a_session_without_history(tmp_path: Path, past: Finished) -> None:
    session, path = past.id, past.log
    path.write_bytes(b"")
    async with reopen(tmp_path, session) as (_, events):
        assert events == []


@pytest.mark.parametrize(
    "content", [b"", b"garbage\n", b'{"id": "a", "type": "user.message", "data": {"text": "x"}}\n']
)
async def test_an_undecodable_session_is_not_deleted_when_it_is_detached(
    tmp_path: Path, past: Finished, content: bytes
) -> None:
    session, path = past.id, past.log
    path.write_bytes(content)
    async with running_server(tmp_path) as server:
        await server.wire.call("session.resume", {"sessionId": session, "provider": scripted()})
        await server.wire.call("session.detach", {"sessionId": session})
        assert path.read_bytes().startswith(content)


async def test_a_session_without_its_workspace_file_is_resumed(tmp_path: Path, past: Finished) -> None:
    session, path, before = past.id, past.log, past.events
    path.with_name("workspace.yaml").unlink()
    shutil.rmtree(path.parent / "checkpoints")
    async with reopen(tmp_path, session) as (_, events):
        assert events == before


async def test_a_session_whose_log_cannot_be_repaired_is_refused_and_can_be_retried(
    tmp_path: Path, past: Finished
) -> None:
    session, path, before = past.id, past.log, past.events
    workspace = path.parent / "workspace.yaml"
    workspace.unlink()
    workspace.mkdir()
    async with running_server(tmp_path) as server:
        error = await server.wire.error_of("session.resume", {"sessionId": session, "provider": scripted()})
        assert "session folder" in error["message"]
        assert str(tmp_path) not in error["message"]
        send_error = await server.wire.error_of("session.send", {"sessionId": session, "prompt": "x"})
        assert send_error["message"] == f"Session not found: {session}"
        workspace.rmdir()
        await server.wire.call("session.resume", {"sessionId": session, "provider": scripted()})
        assert (await stored_events(server.wire, session))[: len(before)] == before


# --- full disks ---------------------------------------------------------------------------------------------------

FILE_LIMIT_BLOCKS = 16
FILE_LIMIT = FILE_LIMIT_BLOCKS * 512


@asynccontextmanager
async def full_disk(folder: Path) -> AsyncGenerator[RunningServer]:
    """Run a server whose files are limited to some kilobytes; another session of it must keep working."""
    async with running_server(folder, config=READABLE, file_limit_blocks=FILE_LIMIT_BLOCKS) as server:
        other = await server.wire.create(scripted({"text": "fine"}))
        yield server
        events = await server.wire.prompt(other)
        assert data_of(events, "assistant.message")[0]["content"] == "fine"


def assert_failed_run(events: list[JsonObject]) -> None:
    """Assert that the run ended with a single error that names the log."""
    (error,) = data_of(events, "session.error")
    assert "cannot write the session log" in error["message"]
    assert events[-1]["type"] == "session.idle"
    assert [event["type"] for event in events].count("session.idle") == 1


def whole_lines(path: Path) -> list[JsonObject]:
    """Return the events of the log; every line must be one."""
    data = path.read_bytes()
    assert data.endswith(b"\n")
    return [json.loads(line) for line in data.splitlines()]


async def test_a_prompt_that_cannot_be_written_fails_and_the_next_one_works(tmp_path: Path) -> None:
    async with full_disk(tmp_path) as server:
        wire = server.wire
        session = await wire.create(scripted({"text": "small"}))
        assert_failed_run(await wire.prompt(session, "x" * FILE_LIMIT))
        events = await wire.prompt(session, "y")
        assert data_of(events, "assistant.message")[0]["content"] == "small"
        assert [event["id"] for event in whole_lines(server.log_of(session))] == [
            event["id"] for event in persisted(wire.events(session))
        ]


async def test_an_answer_that_cannot_be_written_fails_the_run(tmp_path: Path) -> None:
    async with full_disk(tmp_path) as server:
        session = await server.wire.create(scripted({"text": "x" * FILE_LIMIT}))
        assert_failed_run(await server.wire.prompt(session))
        assert all(event["type"] != "assistant.message" for event in whole_lines(server.log_of(session)))


async def test_tool_results_that_cannot_be_written_fail_the_run_once(tmp_path: Path) -> None:
    async with full_disk(tmp_path) as server:
        wire = server.wire
        several: JsonObject = {
            "tool_calls": [{"id": f"call-{n}", "name": "lookup", "arguments": {}} for n in range(3)]
        }
        session = await wire.create(scripted(several, {"text": "next"}), tools=[LOOKUP])
        since = len(wire.messages)
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        request = await wire.event("external_tool.requested", session=session, toolCallId="call-2")
        params = {"sessionId": session, "requestId": request["data"]["requestId"], "result": "x" * FILE_LIMIT}
        await wire.call("session.tools.handlePendingToolCall", params)
        await wire.event("session.idle", session=session)
        assert_failed_run(wire.events(session, since=since))
        completed = data_of(wire.events(session), "tool.execution_complete")
        assert len(completed) == len({data["toolCallId"] for data in completed})


async def fill(wire: Wire, session: str) -> None:
    """Write to the session's log until not even a short event fits."""
    for length in (1000, 100, 1):
        for _ in range(100):
            params = {"sessionId": session, "modelId": "m" * length}
            if "error" in await wire.response(await wire.ask("session.model.switchTo", params)):
                break
        else:
            raise AssertionError("the disk does not fill up")


@pytest.mark.parametrize("turn", [{"hang": True}, calls("lookup"), calls("bash", command="sleep 300")], ids=str)
async def test_an_abort_that_cannot_be_written_still_ends_the_run(tmp_path: Path, turn: JsonObject) -> None:
    async with full_disk(tmp_path) as server:
        wire = server.wire
        session = await wire.create(scripted(turn), tools=[LOOKUP])
        await wire.call("session.permissions.setApproveAll", {"sessionId": session, "enabled": True})
        since = len(wire.messages)
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        await wire.event("assistant.turn_start" if turn.get("hang") else "tool.execution_start", session=session)
        await fill(wire, session)
        await wire.call("session.abort", {"sessionId": session, "reason": "because " * 100})
        await wire.event("session.idle", session=session)
        assert [e["type"] for e in wire.events(session, since=since)].count("session.idle") == 1
        assert server.descendants() == []
        whole_lines(server.log_of(session))


async def test_a_log_replaced_by_a_folder_fails_the_run_and_then_the_read(tmp_path: Path) -> None:
    async with full_disk(tmp_path) as server:
        wire = server.wire
        session = await wire.create(scripted({"text": "one"}, {"text": "two"}))
        await wire.prompt(session)
        await server.wait_until_logs_are_closed()
        path = server.log_of(session)
        path.rename(path.with_name("away"))
        path.mkdir()
        assert_failed_run(await wire.prompt(session))
        error = await wire.error_of("session.getMessages", {"sessionId": session})
        assert "cannot read the session log" in error["message"]
        assert str(tmp_path) not in error["message"]
        path.rmdir()
        path.with_name("away").rename(path)
        events = await wire.prompt(session)
        assert data_of(events, "assistant.message")[0]["content"] == "two"


async def test_a_home_that_cannot_hold_sessions_refuses_them_and_serves_other_methods(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "session-state").write_text("a file where a folder should be")
    async with running_server(tmp_path) as server:
        error = await server.wire.error_of("session.create", {"sessionId": "s", "provider": scripted()})
        assert "cannot create the session folder" in error["message"]
        assert str(tmp_path) not in error["message"]
        assert (await server.wire.call("session.list", {}))["sessions"] == []
        assert server.wire.events() == []
        send_error = await server.wire.error_of("session.send", {"sessionId": "s", "prompt": "x"})
        assert send_error["message"] == "Session not found: s"
