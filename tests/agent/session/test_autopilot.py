"""Autopilot: the session goes on by itself until the model calls ``task_complete``, up to a limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.support.server import JsonObject, RunningServer, calls, running_server, scripted

pytestmark = pytest.mark.anyio

COMPLETE = calls("task_complete", "call-c", summary="All done.")


async def opened(server: RunningServer, *turns: JsonObject, mode: str = "autopilot", **options: Any) -> str:
    session = await server.wire.create(scripted(*turns), **options)
    await server.wire.call("session.mode.set", {"sessionId": session, "mode": mode})
    return session


def told(events: list[JsonObject]) -> list[JsonObject]:
    """Return the data of the messages that make the model continue."""
    data = [event["data"] for event in events if event["type"] == "user.message"]
    return [message for message in data if message.get("isAutopilotContinuation")]


def stops(events: list[JsonObject]) -> list[str]:
    return [event["data"]["reason"] for event in events if event["type"] == "session.autopilot_stopped"]


async def test_the_model_is_made_to_continue_until_it_completes_the_task(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await opened(server, {"text": "first part"}, {"text": "second part"}, COMPLETE)
        sent = await server.wire.call("session.send", {"sessionId": session, "prompt": "do it"})
        await server.wire.event("session.idle")
        events = server.wire.events(session)
        messages = told(events)
        assert [(message["content"], message["source"], message["agentMode"]) for message in messages] == [
            ("", "system", "autopilot")
        ] * 2
        types = [event["type"] for event in events]
        assert (types.count("session.idle"), types.count("assistant.idle")) == (1, 3)
        complete = next(event["data"] for event in events if event["type"] == "session.task_complete")
        assert complete == {"summary": "All done.", "success": True}
        last = [kind for kind in types if kind in ("tool.execution_complete", "session.task_complete")]
        assert last == ["tool.execution_complete", "session.task_complete"]
        stopped = next(event["data"] for event in events if event["type"] == "session.autopilot_stopped")
        assert stopped == {"reason": "completed", "requestId": sent["messageId"]}
        # The model gets words for what the user sees nothing of.
        log = [orjson.loads(line) for line in server.log_of(session).read_bytes().splitlines()]
        assert all("task_complete" in message["transformedContent"] for message in told(log))


@pytest.mark.parametrize(
    ("options", "continued", "reason"),
    [
        ({}, 5, "limit"),
        ({"autopilot": {"maxContinues": 2}}, 2, "limit"),
        ({"autopilot": {"maxContinues": 0}}, 0, "limit"),
        ({"autopilot": {"continuationEnabled": False}}, 0, "disabled"),
    ],
)
async def test_a_model_that_never_completes_is_made_to_continue_a_limited_number_of_times(
    tmp_path: Path, options: JsonObject, continued: int, reason: str
) -> None:
    async with running_server(tmp_path) as server:
        session = await opened(server, *[{"text": "hm"}] * 7, **options)
        events = await server.wire.prompt(session)
        assert (len(told(events)), stops(events)) == (continued, [reason])


async def test_a_limit_is_kept_for_a_resumed_session(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await opened(server, {"text": "hm"}, {"text": "hm"}, autopilot={"maxContinues": 1})
        await server.wire.prompt(session)
    async with running_server(tmp_path) as server:
        params = {"sessionId": session, "provider": scripted(*[{"text": "hm"}] * 9)}
        await server.wire.call("session.resume", params)
        assert len(told(await server.wire.prompt(session))) == 1


async def test_failures_and_aborts_end_it(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await opened(server, {"text": "hm"})
        events = await server.wire.prompt(session)
        assert (len(told(events)), stops(events)) == (1, ["error"])

        waiting = await opened(server, {"text": "hm"}, {"text": "slow", "delay_ms": 60_000})
        since = len(server.wire.messages)
        await server.wire.call("session.send", {"sessionId": waiting, "prompt": "go"})
        await server.wire.event("user.message", session=waiting, since=since, isAutopilotContinuation=True)
        await server.wire.call("session.abort", {"sessionId": waiting})
        idle = await server.wire.event("session.idle", session=waiting, since=since)
        assert idle["data"]["aborted"] is True
        assert stops(server.wire.events(waiting, since=since)) == ["aborted"]


async def test_other_modes_have_neither_the_tool_nor_continuations(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await opened(server, {"text": "done"}, mode="interactive")
        tools = await server.wire.call("session.tools.getCurrentMetadata", {"sessionId": session})
        assert "task_complete" not in [tool["name"] for tool in tools["tools"]]
        # For one prompt, the mode is a hint only.
        events = await server.wire.prompt(session, agentMode="autopilot")
        assert (told(events), stops(events)) == ([], [])


async def test_an_objective_is_kept_until_it_is_reached(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await opened(server, *[{"text": "hm"}] * 7, COMPLETE, mode="interactive")
        here = {"sessionId": session}
        assert await server.wire.call("session.autopilotObjective.getState", here) == {}
        command = here | {"name": "autopilot", "input": "ship it"}
        result = await server.wire.call("session.commands.invoke", command)
        assert (result["kind"], result["displayPrompt"], result["mode"]) == (
            "agent-prompt",
            "Autopilot objective: ship it",
            "autopilot",
        )
        state = (await server.wire.call("session.autopilotObjective.getState", here))["state"]
        assert (state["id"], state["objective"], state["status"]) == (1, "ship it", "active")
        events = await server.wire.prompt(session, result["prompt"])
        # More often than without an objective.
        assert (len(told(events)), stops(events)) == (7, ["completed"])
        assert await server.wire.call("session.mode.get", here) == "interactive"
        state = (await server.wire.call("session.autopilotObjective.getState", here))["state"]
        assert (state["status"], state["turnCount"], state["completionSummary"]) == ("completed", 8, "All done.")
    async with running_server(tmp_path) as server:
        await server.wire.call("session.resume", here)
        file = await server.wire.call("session.workspaces.readAutopilotObjective", here)
        assert orjson.loads(file["content"])["current"]["status"] == "completed"
        assert await server.wire.call("session.workspaces.deleteAutopilotObjective", here) == {"deleted": True}
        assert await server.wire.call("session.workspaces.autopilotObjectiveExists", here) == {"exists": False}
        written = await server.wire.call("session.workspaces.writeAutopilotObjective", here | {"content": "mine"})
        assert written == {"operation": "create"}
        assert await server.wire.call("session.autopilotObjective.getState", here) == {}
