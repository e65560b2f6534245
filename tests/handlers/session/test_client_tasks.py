"""``session.tasks.*``: tasks that clients carry out themselves, and reading the output of commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.subagents.test_subagents_over_the_wire import by_prompt
from tests.support.server import JsonObject, Wire, calls, running_server, scripted

pytestmark = pytest.mark.anyio

BUILD: JsonObject = {
    "type": "client",
    "clientTaskId": "build-7",
    "description": "Build the release",
    "displayName": "Build",
    "cancellable": True,
}


async def listed(wire: Wire, session: str) -> list[JsonObject]:
    return (await wire.call("session.tasks.list", {"sessionId": session}))["tasks"]


async def register(wire: Wire, session: str, **more: object) -> JsonObject:
    return (await wire.call("session.tasks.register", {"sessionId": session, **BUILD, **more}))["task"]


def progress(session: str, task: JsonObject, sequence: int, **update: object) -> JsonObject:
    return {"sessionId": session, "id": task["id"], "sequence": sequence, "update": {"kind": "progress", **update}}


async def test_a_client_lists_its_own_work_and_reports_its_progress_and_end(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(scripted())
        task = await register(wire, session)
        assert (task["status"], task["sequence"], task["canCancel"]) == ("running", 0, True)
        assert (task["owner"]["kind"], task["owner"]["presence"]) == ("sdk", "connected")
        known = await wire.call("session.tasks.register", {"sessionId": session, **BUILD, "expectedSequence": 0})
        assert (known["task"]["id"], known["created"], known["reclaimed"]) == (task["id"], False, False)
        assert [one["id"] for one in await listed(wire, session)] == [task["id"]]

        shown = {"message": "half of it", "phase": "link", "percentage": 50}
        await wire.call("session.tasks.update", progress(session, task, 1, **shown))
        reset = {"status": "idle", "phase": None, "message": "waiting"}
        updated = (await wire.call("session.tasks.update", progress(session, task, 2, **reset)))["task"]
        assert (updated["status"], updated["sequence"], "idleSince" in updated) == ("idle", 2, True)
        found = await wire.call("session.tasks.getProgress", {"sessionId": session, "id": task["id"]})
        latest: JsonObject = found["progress"]
        assert [line["message"] for line in latest.pop("recentActivity")] == ["half of it", "waiting"]
        assert (latest["percentage"], latest["lastMessage"], "phase" in latest) == (50, "waiting", False)

        # An update that is sent twice counts once; an older one is refused.
        again = await wire.call("session.tasks.update", progress(session, task, 2, message="again"))
        assert again["task"]["updatedAt"] == updated["updatedAt"]
        assert (again["applied"], again["duplicate"]) == (False, True)
        stale = await wire.error_of("session.tasks.update", progress(session, task, 1, message="late"))
        assert "sequence 1 is older than that of the task, 2" in stale["message"]

        done = {"kind": "completed", "result": {"files": 3}}
        ended = {"sessionId": session, "id": task["id"], "sequence": 3, "update": done}
        task = (await wire.call("session.tasks.update", ended))["task"]
        assert (task["status"], task["result"], task["canCancel"]) == ("completed", {"files": 3}, False)
        refused = await wire.error_of("session.tasks.update", progress(session, task, 4, message="more"))
        assert "has ended: it is completed" in refused["message"]
        assert await wire.call("session.tasks.remove", {"sessionId": session, "id": task["id"]}) == {
            "removed": True
        }
        assert await listed(wire, session) == []


async def test_only_the_owner_changes_a_task_and_is_asked_to_cancel_it(tmp_path: Path) -> None:
    async with running_server(tmp_path, tcp=True) as server, server.connect() as owner, server.connect() as other:
        session = await owner.create(scripted())
        await other.call("session.resume", {"sessionId": session})
        task = await register(owner, session)
        refused = await other.error_of("session.tasks.update", progress(session, task, 1, message="mine"))
        assert "unknown client task id" in refused["message"]

        for answer in (False, True):
            since = len(owner.messages)
            cancelling = await other.ask("session.tasks.cancel", {"sessionId": session, "id": task["id"]})
            asked = await owner.until(lambda message: message.get("method") == "tasks.cancel", since=since)
            assert asked["params"]["clientTaskId"] == "build-7"
            assert asked["params"]["reason"] == "cancel_requested"
            await owner.answer(asked, {"cancelled": answer})
            assert (await other.response(cancelling))["result"] == {"cancelled": answer}
        (cancelled,) = await listed(other, session)
        assert cancelled["status"] == "cancelled"


async def test_the_tasks_of_a_client_that_leaves_are_orphaned(tmp_path: Path) -> None:
    async with running_server(tmp_path, tcp=True) as server, server.connect() as other:
        async with server.connect() as owner:
            session = await owner.create(scripted())
            await other.call("session.resume", {"sessionId": session})
            task = await register(owner, session)
            since = len(other.messages)
        await other.event("session.background_tasks_changed", since=since)
        (orphan,) = await listed(other, session)
        assert (orphan["id"], orphan["status"]) == (task["id"], "orphaned")
        assert (orphan["owner"]["presence"], orphan["canCancel"]) == ("disconnected", False)
        gone = {"sessionId": session, "id": task["id"]}
        assert await other.call("session.tasks.cancel", gone) == {"cancelled": False}
        assert await other.call("session.tasks.remove", gone) == {"removed": True}


async def test_the_output_of_a_command_is_read_in_parts_without_its_secrets(tmp_path: Path) -> None:
    command = "echo one; until [ -e go ]; do sleep 0.01; done; echo key: hunter2-and-more; exit 3"
    model = by_prompt({"begin": [calls("bash", command=command, mode="async", detach=True), {"text": "-"}]})
    async with running_server(tmp_path, args=["--yolo"]) as server:
        wire = server.wire
        await wire.call("secrets.addFilterValues", {"values": ["hunter2-and-more"]})
        session = await wire.create(model)
        await wire.prompt(session, "begin")
        (task,) = await listed(wire, session)
        assert task["pid"] > 1
        read = {"sessionId": session, "id": task["id"], "waitMs": 10_000}
        first = await wire.call("session.tasks.readOutput", read)
        assert (first["text"], "exit" in first) == ("one\n", False)
        nothing = await wire.call("session.tasks.readOutput", {**read, "cursor": first["cursor"], "waitMs": 0})
        assert nothing == {"cursor": first["cursor"], "text": ""}
        reading = await wire.ask("session.tasks.readOutput", {**read, "cursor": first["cursor"]})
        (tmp_path / "go").touch()
        result = (await wire.response(reading))["result"]
        text = result["text"]
        while "exit" not in result:
            result = await wire.call("session.tasks.readOutput", {**read, "cursor": result["cursor"]})
            text += result["text"]
        assert (text, result["exit"]) == ("key: [redacted]\n", {"status": "completed", "exitCode": 3})
        for cursor, problem in (("x", "invalid cursor 'x'"), ("999", "is not kept any more")):
            refused = await wire.error_of("session.tasks.readOutput", {**read, "cursor": cursor})
            assert problem in refused["message"]
        unknown = await wire.error_of("session.tasks.readOutput", {**read, "id": "77"})
        assert "unknown shell task id '77'" in unknown["message"]
