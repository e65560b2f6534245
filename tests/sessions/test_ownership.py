"""One owner per session: two real processes on one home."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.server import RunningServer, Wire, calls, running_server, scripted

pytestmark = pytest.mark.anyio

HELLO = scripted({"text": "Hi"}, {"text": "Hi again"})
HANGING = scripted({"hang": True})
LOOKUP: dict[str, Any] = {"name": "lookup", "description": "Look up", "parameters": {"type": "object"}}
IN_USE = -32006


@asynccontextmanager
async def two_servers(folder: Path, **first: Any) -> AsyncGenerator[tuple[RunningServer, RunningServer]]:
    async with running_server(folder, **first) as one, running_server(folder) as two:
        yield one, two


async def resume(wire: Wire, session: str, **options: Any) -> Any:
    return await wire.call("session.resume", {"sessionId": session, "provider": HELLO, **options})


async def refusal(wire: Wire, method: str, session: str, **params: Any) -> dict[str, Any]:
    error = await wire.error_of(method, {"sessionId": session, **params})
    assert error["code"] == IN_USE, error
    assert error["data"]["sessionId"] == session
    assert f"process {error['data']['pid']}" in error["message"]
    return error


async def busy_session(wire: Wire) -> str:
    session = await wire.create(HANGING)
    await wire.call("session.send", {"sessionId": session, "prompt": "go"})
    await wire.event("assistant.turn_start", session=session)
    return session


def logged(server: RunningServer, session: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in server.log_of(session).read_bytes().splitlines()]


async def test_an_idle_session_moves_to_the_process_that_resumes_it(tmp_path: Path) -> None:
    async with two_servers(tmp_path) as (one, two):
        session = await one.wire.create(HELLO)
        await one.wire.prompt(session, "first")
        await resume(two.wire, session)

        moved = await one.wire.event("session.warning", session=session, warningType="taken_over")
        assert f"Process {two.process.pid} has taken over" in moved["data"]["message"]
        error = await refusal(one.wire, "session.send", session, prompt="lost?")
        assert error["data"]["pid"] == two.process.pid
        await two.wire.prompt(session, "second")
        # Leaving a session that another process owns changes nothing.
        assert await one.wire.call("session.destroy", {"sessionId": session}) == {"success": True}

        await resume(one.wire, session)
        await one.wire.prompt(session, "third")
        await refusal(two.wire, "session.send", session, prompt="lost?")
        prompts = [event["data"]["content"] for event in logged(one, session) if event["type"] == "user.message"]
        assert prompts == ["first", "second", "third"]
        assert await one.wire.call("sessions.checkInUse", {"sessionIds": [session]}) == {"inUse": []}
        assert await two.wire.call("sessions.checkInUse", {"sessionIds": [session]}) == {"inUse": [session]}


async def test_a_session_without_a_prompt_survives_its_move(tmp_path: Path) -> None:
    async with two_servers(tmp_path) as (one, two):
        session = await one.wire.create(HELLO)
        await resume(two.wire, session)
        await two.wire.prompt(session)


async def test_a_second_process_is_refused_while_a_prompt_runs_unless_it_takes_over(tmp_path: Path) -> None:
    async with two_servers(tmp_path) as (one, two):
        session = await busy_session(one.wire)
        error = await refusal(two.wire, "session.resume", session, provider=HELLO)
        assert error["data"]["pid"] == one.process.pid
        assert "takeOver" in error["message"]
        fork = await two.wire.call("sessions.fork", {"sessionId": session})
        assert logged(two, fork["sessionId"])[0]["type"] == "session.start"

        await resume(two.wire, session, takeOver=True)
        await one.wire.event("session.warning", session=session, warningType="taken_over")
        await one.wire.event("session.idle", session=session)
        await two.wire.prompt(session)
        told = [event["id"] for event in one.wire.events(session) if not event.get("ephemeral")]
        assert told == [event["id"] for event in logged(one, session)][: len(told)]


async def test_a_run_that_waits_for_an_absent_client_does_not_keep_its_session(tmp_path: Path) -> None:
    async with two_servers(tmp_path, tcp=True) as (one, two):
        async with one.connect() as wire:
            session = await wire.create(scripted(calls("lookup")), tools=[LOOKUP])
            await wire.call("session.permissions.setApproveAll", {"sessionId": session, "enabled": True})
            await wire.call("session.send", {"sessionId": session, "prompt": "go"})
            await wire.event("external_tool.requested", session=session)
            await refusal(two.wire, "session.resume", session, provider=HELLO)
        await resume(two.wire, session)
        results = [event for event in logged(two, session) if event["type"] == "tool.execution_complete"]
        assert len(results) == 1
        await two.wire.prompt(session)


async def test_a_session_in_use_elsewhere_is_never_deleted(tmp_path: Path) -> None:
    async with two_servers(tmp_path) as (one, two):
        session = await one.wire.create(HELLO)
        await one.wire.prompt(session)
        await refusal(two.wire, "sessions.delete", session)
        answer = await two.wire.call("session.delete", {"sessionId": session})
        assert answer["success"] is False
        assert f"in use by process {one.process.pid}" in answer["error"]
        assert await two.wire.call("sessions.bulkDelete", {"sessionIds": [session]}) == {"freedBytes": {}}
        pruned = await two.wire.call("sessions.pruneOld", {"olderThanDays": 0})
        assert (pruned["deleted"], pruned["skipped"]) == ([], [session])
        assert await two.wire.call("sessions.releaseLock", {"sessionId": session}) == {}
        await one.wire.prompt(session)

        await one.wire.call("session.destroy", {"sessionId": session})
        assert await two.wire.call("session.delete", {"sessionId": session}) == {"success": True}


async def test_a_session_id_is_taken_in_all_processes(tmp_path: Path) -> None:
    async with two_servers(tmp_path) as (one, two):
        session = await one.wire.create(HELLO, sessionId="shared")
        error = await two.wire.error_of("session.create", {"sessionId": "shared", "provider": HELLO})
        assert error["message"] == "session 'shared' already exists"
        await one.wire.prompt(session)


async def test_the_deletion_of_a_folder_by_another_program_affects_no_other_session(tmp_path: Path) -> None:
    async with two_servers(tmp_path) as (one, two):
        first = await one.wire.create(HELLO, sessionId="session")
        await one.wire.prompt(first)
        await one.wait_until_logs_are_closed()
        shutil.rmtree(one.log_of(first).parent)
        # New folders get the inodes of deleted ones.
        for server in (one, two):
            for _ in range(5):
                await server.wire.prompt(await server.wire.create(HELLO))
        await one.wire.prompt(await one.wire.create(HELLO, sessionId="Session"))
        await one.wire.call("session.destroy", {"sessionId": first})
        await refusal(two.wire, "sessions.delete", "Session")


async def test_the_session_of_a_killed_process_can_be_resumed_at_once(tmp_path: Path) -> None:
    async with two_servers(tmp_path) as (one, two):
        session = await busy_session(one.wire)
        pipes = tmp_path / "home" / "owners"
        one.signal(signal.SIGKILL)
        await resume(two.wire, session)
        one.expect_exit = -signal.SIGKILL
        await two.wire.prompt(session)
        marks = [path.name for path in two.log_of(session).parent.glob("inuse.*")]
        assert marks == [f"inuse.{two.process.pid}.lock"]
        async with running_server(tmp_path) as three:
            await three.wire.create(HELLO)
            await resume(three.wire, session)
            assert len(list(pipes.glob("*.pipe"))) == 2
    assert list(pipes.glob("*.pipe")) == []


async def test_a_session_can_be_resumed_while_its_process_ends(tmp_path: Path) -> None:
    async with two_servers(tmp_path) as (one, two):
        session = await busy_session(one.wire)
        await one.close_stdin()
        await resume(two.wire, session)
        await two.wire.prompt(session)


async def test_an_owner_that_does_not_respond_keeps_its_session(tmp_path: Path) -> None:
    async with two_servers(tmp_path) as (one, two):
        session = await one.wire.create(HELLO)
        await one.wire.prompt(session)
        one.signal(signal.SIGSTOP)
        try:
            await refusal(two.wire, "session.resume", session, provider=HELLO)
        finally:
            one.signal(signal.SIGCONT)
        # The requests of that time are void.
        await one.wire.prompt(session)


async def test_two_names_of_one_folder_are_one_session(tmp_path: Path) -> None:
    async with two_servers(tmp_path) as (one, two):
        session = await one.wire.create(HELLO, sessionId="name")
        await one.wire.prompt(session)
        # As on a disk that ignores case.
        (one.log_of("NAME").parent).symlink_to("name")
        error = await one.wire.error_of("session.resume", {"sessionId": "NAME", "provider": HELLO})
        assert error["message"] == "session 'NAME' is live under the name 'name'"
        await refusal(two.wire, "sessions.delete", "NAME")
        await resume(two.wire, "NAME")
        await two.wire.prompt("NAME")
        await refusal(one.wire, "session.send", "name", prompt="lost?")
