"""Autopilot: the session goes on by itself until the model calls ``task_complete``, up to a limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.support.callbacks import answering
from tests.support.server import JsonObject, RunningServer, calls, running_server, scripted

pytestmark = pytest.mark.anyio

COMPLETE = calls("task_complete", "call-c", summary="All done.")
LOOKUP = {"name": "lookup", "description": "Look it up", "skipPermission": True}


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


async def look_up(server: RunningServer, session: str, since: int = 0) -> None:
    """Answer the open call of ``lookup``."""
    request = await server.wire.event("external_tool.requested", session=session, since=since)
    answer = {"sessionId": session, "requestId": request["data"]["requestId"], "result": "it"}
    await server.wire.call("session.tools.handlePendingToolCall", answer)


def summaries(events: list[JsonObject]) -> list[str]:
    return [event["data"]["summary"] for event in events if event["type"] == "session.task_complete"]


async def test_a_mode_that_changes_while_a_prompt_runs_applies_from_the_next_turn_on(tmp_path: Path) -> None:
    turns = [calls("lookup"), COMPLETE, calls("lookup", "call-2"), *[{"text": "hm"}] * 7]
    async with running_server(tmp_path) as server:
        session = await opened(server, *turns, mode="interactive", tools=[LOOKUP])
        here = {"sessionId": session}

        async def enter() -> list[JsonObject]:
            since = len(server.wire.messages)
            await server.wire.call("session.send", here | {"prompt": "go"})
            await server.wire.event("external_tool.requested", since=since)
            await server.wire.call("session.mode.set", here | {"mode": "autopilot"})
            await look_up(server, session, since)
            await server.wire.event("session.idle", since=since)
            await server.wire.call("session.mode.set", here | {"mode": "interactive"})
            return server.wire.events(session, since=since)

        first = await enter()
        assert (summaries(first), stops(first)) == (["All done."], ["completed"])
        second = await enter()
        # Nothing of the first prompt is left: neither its completion nor its continuations.
        assert (summaries(second), len(told(second)), stops(second)) == ([], 5, ["limit"])


async def test_a_mode_that_is_left_in_a_continuation_ends_the_prompt_with_that_turn(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await opened(server, {"text": "hm"}, calls("lookup"), {"text": "over"}, tools=[LOOKUP])
        await server.wire.call("session.send", {"sessionId": session, "prompt": "go"})
        await server.wire.event("external_tool.requested")
        await server.wire.call("session.mode.set", {"sessionId": session, "mode": "interactive"})
        await look_up(server, session)
        idle = await server.wire.event("session.idle")
        # A client that waits for the end takes this event for it.
        assert idle["data"]["mode"] == "interactive"
        events = server.wire.events(session)
        assert (len(told(events)), stops(events)) == (1, [])


async def test_a_prompt_that_ended_before_its_session_entered_the_mode_is_announced_too(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await opened(server, calls("lookup"), {"text": "done"}, mode="interactive", tools=[LOOKUP])
        here = {"sessionId": session}
        sent = await server.wire.call("session.send", here | {"prompt": "go"})
        await server.wire.event("external_tool.requested")
        await server.wire.call("session.commands.enqueue", here | {"command": "/autopilot"})
        await look_up(server, session)
        idle = await server.wire.event("session.idle")
        # SDKs do not take this event for the end of the prompt.
        assert idle["data"]["mode"] == "autopilot"
        stopped = await server.wire.event("session.autopilot_stopped")
        assert stopped["data"] == {"reason": "completed", "requestId": sent["messageId"]}


async def test_a_message_that_arrives_after_the_task_is_complete_is_worked_on_like_a_prompt(tmp_path: Path) -> None:
    both = calls("lookup")
    both["tool_calls"] += COMPLETE["tool_calls"]
    again = calls("task_complete", "call-d", summary="That, too.")
    async with running_server(tmp_path) as server:
        session = await opened(server, both, {"text": "On it."}, again, tools=[LOOKUP])
        here = {"sessionId": session}
        first = await server.wire.call("session.send", here | {"prompt": "go"})
        await server.wire.event("external_tool.requested")
        second = await server.wire.call("session.send", here | {"prompt": "this, too", "mode": "immediate"})
        await look_up(server, session)
        await server.wire.event("session.idle")
        events = server.wire.events(session)
    assert summaries(events) == ["All done.", "That, too."]
    assert len(told(events)) == 1
    # A client may wait for each of both.
    stopped = [event["data"] for event in events if event["type"] == "session.autopilot_stopped"]
    assert stopped == [{"reason": "completed", "requestId": sent["messageId"]} for sent in (first, second)]


async def test_a_hook_that_blocks_the_end_reopens_the_task(tmp_path: Path) -> None:
    again = calls("task_complete", "call-d", summary="Tested.")
    async with running_server(tmp_path) as server:
        session = await opened(server, COMPLETE, again, hooks=True)
        blocks = {"agentStop": [{"decision": "block", "reason": "Test it too."}]}
        async with answering(server.wire, blocks) as client:
            events = await server.wire.prompt(session)
        assert [call["stop_hook_active"] for call in client.inputs("agentStop")] == [False, True]
        assert (summaries(events), stops(events)) == (["All done.", "Tested."], ["completed"])


async def test_the_operator_limits_the_continuations(tmp_path: Path) -> None:
    async with running_server(tmp_path, config="[agents]\ncontinues = 1\n") as server:
        session = await opened(server, *[{"text": "hm"}] * 9, autopilot={"maxContinues": 100})
        assert len(told(await server.wire.prompt(session))) == 1
        command = {"sessionId": session, "name": "autopilot", "input": "ship it"}
        await server.wire.call("session.commands.invoke", command)
        assert len(told(await server.wire.prompt(session))) == 1
