"""Commands in the background: the model is told about their ends, and the session waits for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.agent.subagents.test_subagents_over_the_wire import by_prompt, named, results
from tests.support.server import JsonObject, Wire, calls, running_server

pytestmark = pytest.mark.anyio


def start(command: str, **more: Any) -> JsonObject:
    """Return a turn that leaves a command running."""
    return calls("bash", command=command, mode="async", description="wait for it", **more)


async def tasks(wire: Wire, session: str) -> list[JsonObject]:
    return (await wire.call("session.tasks.list", {"sessionId": session}))["tasks"]


async def test_the_model_is_told_about_the_end_of_a_command_before_the_session_is_idle(tmp_path: Path) -> None:
    model = by_prompt(
        {
            "begin": [start("until [ -e go ]; do sleep 0.01; done; echo done; exit 3"), {"text": "started"}],
            "has failed with exit code 3": [calls("read_bash", "call-2", shellId="0"), {"text": "told"}],
        }
    )
    async with running_server(tmp_path, args=["--yolo"]) as server:
        wire = server.wire
        session = await wire.create(model)
        waiting = await wire.ask("session.sendAndWait", {"sessionId": session, "prompt": "begin"})
        await wire.event("assistant.idle")
        (running,) = await tasks(wire, session)
        shown = {name: running.get(name) for name in ("type", "id", "description", "status", "executionMode")}
        assert list(shown.values()) == ["shell", "0", "wait for it", "running", "background"]
        assert named(wire.events(), "session.idle") == []
        (tmp_path / "go").touch()
        answered = await wire.response(waiting)
        assert answered["result"]["response"]["data"]["content"] == "told"
        events = wire.events()
        (told,) = named(events, "system.notification")
        assert told["data"]["kind"] == {
            "type": "shell_completed",
            "shellId": "0",
            "exitCode": 3,
            "description": "wait for it",
        }
        assert results(events)["call-2"] == "done\n<exited with exit code 3>"
        assert len(named(events, "session.idle")) == len(named(events, "user.message")) == 1


async def test_a_command_whose_end_the_model_has_read_is_not_announced(tmp_path: Path) -> None:
    model = by_prompt(
        {
            "read": [start("echo one"), calls("read_bash", "call-2", shellId="0", delay=60), {"text": "-"}],
            "stop": [start("sleep 1000"), calls("stop_bash", "call-3", shellId="1"), {"text": "-"}],
        }
    )
    async with running_server(tmp_path, args=["--yolo"]) as server:
        session = await server.wire.create(model)
        for prompt in ("read", "stop"):
            events = await server.wire.prompt(session, prompt)
            assert named(events, "system.notification") == []


async def test_the_session_does_not_wait_for_servers_and_shells_that_the_model_types_into(tmp_path: Path) -> None:
    model = by_prompt(
        {
            "serve": [start("sleep 1000", detach=True), {"text": "-"}],
            "type": [
                start("read x; echo $x; sleep 1000"),
                calls("write_bash", "call-2", shellId="1", input="hi"),
                {"text": "-"},
            ],
        }
    )
    async with running_server(tmp_path, args=["--yolo"]) as server:
        session = await server.wire.create(model)
        for prompt in ("serve", "type"):
            await server.wire.prompt(session, prompt)
        found = [(task["status"], task["attachmentMode"]) for task in await tasks(server.wire, session)]
        assert found == [("running", "detached"), ("running", "attached")]


async def test_a_cancelled_command_an_abort_and_a_limit_end_the_wait(tmp_path: Path) -> None:
    model = by_prompt({"begin": [start("sleep 1000"), {"text": "-"}]})
    async with running_server(tmp_path, args=["--yolo"], config="[agents]\ncommand_wait_s = 30\n") as server:
        wire = server.wire
        session = await wire.create(model)
        for method, more in (("session.tasks.cancel", {"id": "0"}), ("session.abort", {})):
            since = len(wire.messages)
            await wire.call("session.send", {"sessionId": session, "prompt": "begin"})
            await wire.event("assistant.idle", since=since)
            assert named(wire.events(since=since), "session.idle") == []
            await wire.call(method, {"sessionId": session, **more})
            await wire.event("session.idle", since=since)
        assert [task["status"] for task in await tasks(wire, session)] == ["cancelled", "running"]
        assert named(wire.events(), "system.notification") == []
    async with running_server(tmp_path, args=["--yolo"], config="[agents]\ncommand_wait_s = 0.25\n") as server:
        session = await server.wire.create(model)
        await server.wire.prompt(session, "begin")


async def test_closing_a_session_ends_the_wait_for_its_commands(tmp_path: Path) -> None:
    model = by_prompt({"begin": [start("sleep 1000"), {"text": "started"}]})
    async with running_server(tmp_path, args=["--yolo"]) as server:
        wire = server.wire
        session = await wire.create(model)
        waiting = await wire.ask("session.sendAndWait", {"sessionId": session, "prompt": "begin"})
        await wire.event("assistant.idle")
        await wire.call("session.destroy", {"sessionId": session})
        answered = await wire.response(waiting)
        assert answered["result"]["response"]["data"]["content"] == "started"


async def test_after_a_kill_the_model_is_told_which_commands_are_gone(tmp_path: Path) -> None:
    model = by_prompt(
        {
            "begin": [
                start("echo one; sleep 1000"),
                calls("bash", "call-2", command="echo two", mode="async", detach=True),
                calls("read_bash", "call-3", shellId="1", delay=60),
                calls("bash", "call-4", command="sleep 1000", initial_wait=0.25),
                calls("stop_bash", "call-5", shellId="2"),
                {"text": "started"},
            ],
            "go on": [{"text": "I know."}],
        }
    )
    async with running_server(tmp_path, args=["--yolo"]) as server:
        session = await server.wire.create(model)
        await server.wire.call("session.send", {"sessionId": session, "prompt": "begin"})
        await server.wire.event("assistant.idle")
        await server.kill()
    for expected in (1, 0):
        async with running_server(tmp_path, args=["--yolo"]) as server:
            await server.wire.call("session.resume", {"sessionId": session, "provider": model})
            events = await server.wire.prompt(session, "go on")
            told = named(events, "system.notification")
            assert len(told) == expected
            for notification in told:
                assert notification["data"]["kind"] == {
                    "type": "shell_completed",
                    "shellId": "0",
                    "description": "wait for it",
                }
                assert "does not run here any more" in notification["data"]["content"]
