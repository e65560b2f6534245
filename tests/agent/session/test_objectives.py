"""Objectives of autopilot: tasks that a session keeps in a file until they are done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.agent.session.test_autopilot import COMPLETE, LOOKUP, look_up, opened, stops, told
from tests.support.server import JsonObject, RunningServer, calls, running_server

pytestmark = pytest.mark.anyio


class Scene:
    """A session that may have an objective."""

    def __init__(self, server: RunningServer, session: str) -> None:
        self.server = server
        self.session = session

    async def call(self, method: str, **params: Any) -> Any:
        return await self.server.wire.call(method, {"sessionId": self.session, **params})

    async def command(self, text: str = "") -> JsonObject:
        return await self.call("session.commands.invoke", name="autopilot", input=text)

    async def prompt(self) -> list[JsonObject]:
        return await self.server.wire.prompt(self.session)

    async def state(self) -> JsonObject | None:
        return (await self.call("session.autopilotObjective.getState")).get("state")

    async def file(self) -> JsonObject:
        return orjson.loads((await self.call("session.workspaces.readAutopilotObjective"))["content"])

    def changes(self) -> list[JsonObject]:
        events = self.server.wire.events(self.session)
        return [event["data"] for event in events if event["type"] == "session.autopilot_objective_changed"]


async def test_an_objective_is_kept_until_it_is_reached(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        scene = Scene(server, await opened(server, *[{"text": "hm"}] * 7, COMPLETE, mode="interactive"))
        assert await scene.state() is None
        result = await scene.command("ship it")
        assert (result["kind"], result["displayPrompt"], result["mode"]) == (
            "agent-prompt",
            "Autopilot objective: ship it",
            "autopilot",
        )
        state = await scene.state() or {}
        assert (state["id"], state["objective"], state["status"]) == (1, "ship it", "active")
        events = await server.wire.prompt(scene.session, result["prompt"])
        # More often than without an objective.
        assert (len(told(events)), stops(events)) == (7, ["completed"])
        assert await scene.call("session.mode.get") == "interactive"
        state = await scene.state() or {}
        assert (state["status"], state["turnCount"], state["completionSummary"]) == ("completed", 8, "All done.")
    async with running_server(tmp_path) as server:
        scene = Scene(server, scene.session)
        await scene.call("session.resume")
        assert (await scene.file())["current"]["status"] == "completed"
        assert await scene.call("session.workspaces.deleteAutopilotObjective") == {"deleted": True}
        assert await scene.call("session.workspaces.autopilotObjectiveExists") == {"exists": False}


async def test_ids_are_not_used_again(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        scene = Scene(server, await opened(server, COMPLETE))
        await scene.command("one")
        await scene.prompt()
        await scene.command("two")
        assert await scene.command("clear") == {"kind": "completed", "message": "The objective was removed."}
        assert await scene.state() is None
        await server.wire.call("session.destroy", {"sessionId": scene.session})
    async with running_server(tmp_path) as server:
        scene = Scene(server, scene.session)
        await scene.call("session.resume")
        await scene.command("three")
        assert [change.get("id") for change in scene.changes()] == [3]
        content = await scene.file()
        content["nextId"] = 41
        text = orjson.dumps(content).decode()
        await scene.call("session.workspaces.writeAutopilotObjective", content=text)
        await scene.command("later")
        assert ((await scene.file())["current"]["id"], (await scene.file())["nextId"]) == (41, 42)


async def test_an_objective_is_paused_outside_of_the_mode_and_at_the_limit(tmp_path: Path) -> None:
    async with running_server(tmp_path, config="[agents]\ncontinues = 2\n") as server:
        scene = Scene(server, await opened(server, *[{"text": "hm"}] * 3, COMPLETE, COMPLETE))
        await scene.command("ship it")
        assert stops(await scene.prompt()) == ["limit"]
        state = await scene.state() or {}
        limit = "the limit on continuations was reached"
        assert (state["status"], state["pauseReason"]) == ("paused", limit)
        current = (await scene.file())["current"]
        assert (current["status"], current["pauseReason"]) == ("paused", limit)

        # The next prompt goes on with it.
        await scene.prompt()
        current = (await scene.file())["current"]
        assert (current["status"], current["resumeCount"]) == ("completed", 1)

        await scene.command("the next")
        off = await scene.command("off")
        assert off == {
            "kind": "completed",
            "message": "Switched to interactive mode. The objective is paused: the next",
        }
        assert (await scene.state() or {})["pauseReason"] == "autopilot mode was left"
        assert await scene.command("off") == {"kind": "completed", "message": "Already in interactive mode."}
        on = await scene.command()
        assert on["message"] == "Switched to autopilot mode. The next prompt resumes the objective: the next"
        await scene.prompt()
        assert [(change["operation"], change["id"], change["status"]) for change in scene.changes()] == [
            ("create", 1, "active"),
            ("update", 1, "paused"),
            ("update", 1, "active"),
            ("update", 1, "completed"),
            ("create", 2, "active"),
            ("update", 2, "paused"),
            ("update", 2, "active"),
            ("update", 2, "completed"),
        ]


async def test_a_former_objective_does_not_end_the_mode(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        scene = Scene(server, await opened(server, COMPLETE, COMPLETE))
        await scene.command("ship it")
        await scene.prompt()
        await scene.call("session.mode.set", mode="autopilot")
        await scene.prompt()
        assert await scene.call("session.mode.get") == "autopilot"


async def test_the_usage_of_the_work_is_counted_aborted_turns_included(tmp_path: Path) -> None:
    used = {"usage": {"input": 100, "output": 20}}
    turns = [{"text": "before", **used}, {**calls("lookup"), **used}, {**COMPLETE, **used}]
    async with running_server(tmp_path) as server:
        scene = Scene(server, await opened(server, *turns, mode="interactive", tools=[LOOKUP]))
        await scene.prompt()
        await scene.command("ship it")
        since = len(server.wire.messages)
        await scene.call("session.send", prompt="go")
        await server.wire.event("external_tool.requested", since=since)
        await scene.call("session.abort")
        await server.wire.event("session.idle", since=since)
        await scene.prompt()
        current = (await scene.file())["current"]
        assert (current["tokenCount"], current["creditCountNanoAiu"]) == (240, "0")


async def test_a_message_that_arrives_after_the_objective_is_reached_is_answered_outside_of_the_mode(
    tmp_path: Path,
) -> None:
    both = calls("lookup")
    both["tool_calls"] += COMPLETE["tool_calls"]
    async with running_server(tmp_path) as server:
        scene = Scene(server, await opened(server, both, {"text": "You are welcome."}, tools=[LOOKUP]))
        await scene.command("ship it")
        await scene.call("session.send", prompt="go")
        await server.wire.event("external_tool.requested")
        await scene.call("session.send", prompt="thanks", mode="immediate")
        await look_up(server, scene.session)
        idle = await server.wire.event("session.idle")
        assert idle["data"]["mode"] == "interactive"
        await server.wire.event("assistant.message", content="You are welcome.")
        assert told(server.wire.events(scene.session)) == []


VALID: JsonObject = {"id": 1, "objective": "ship it", "status": "active"}
MOST = 2**53 - 1


@pytest.mark.parametrize(
    ("content", "status"),
    [
        ("mine", None),
        ("[]", None),
        ('{"current": null}', None),
        ({**VALID, "id": 2**64 - 1}, None),
        ({**VALID, "id": -1}, None),
        ({**VALID, "id": True}, None),
        ({**VALID, "objective": ["x"]}, None),
        ({**VALID, "status": {}}, None),
        ({**VALID, "id": MOST, "turnCount": MOST, "continuationCount": MOST, "tokenCount": MOST}, "active"),
        ({**VALID, "turnCount": 2**64 - 1, "resumeCount": -5, "creditCountNanoAiu": "9" * 5000}, "active"),
        ({**VALID, "createdAt": {}, "completionSummary": 7, "pauseReason": []}, "active"),
        ({**VALID, "status": "cap_reached"}, "paused"),
    ],
    ids=str,
)
async def test_a_file_with_anything_in_it_stops_nothing(
    tmp_path: Path, content: str | JsonObject, status: str | None
) -> None:
    text = content if isinstance(content, str) else orjson.dumps({"nextId": 2**64 - 1, "current": content}).decode()
    async with running_server(tmp_path) as server:
        scene = Scene(server, await opened(server, {"text": "hm"}, COMPLETE))
        written = await scene.call("session.workspaces.writeAutopilotObjective", content=text)
        assert written == {"operation": "create"}
        assert (await scene.state() or {}).get("status") == status
        assert stops(await scene.prompt()) == ["completed"]
        await scene.command("something else")
        assert (await scene.state() or {})["objective"] == "something else"
