"""Restoring a session from its log."""

from __future__ import annotations

import copy
import random
from typing import Any, Final, cast

import pytest
from anyio.abc import TaskGroup
from msgspec.structs import replace

from jumpseat.agent.interfaces import STARTED
from jumpseat.agent.session.session import Session
from jumpseat.agent.subagents.lost_commands import LostCommands
from jumpseat.agent.subagents.subagents import sub_agents
from jumpseat.sessions.replay import APPLIED, replay_events, replay_setting
from jumpseat_protocol.events import EVENT_TYPES, decode_payload
from tests.protocol.samples import sample
from tests.support.logs import log_of
from tests.support.sessions import make_session

pytestmark = pytest.mark.anyio


async def test_the_events_that_a_replay_does_not_decode_change_no_state(tasks: TaskGroup) -> None:
    session = make_session(tasks, script=[{"text": "Hello."}]).session
    agents = sub_agents(session).history()
    before = state_of(session), copy.deepcopy(agents.__dict__)
    for kind in EVENT_TYPES.keys() - APPLIED:
        payload = sample(EVENT_TYPES[kind])

        session.apply("event-1", payload)
        replay_setting(session.settings, payload)
        agents.apply(("event-1", None, payload))

        session.history.event_count, session.history.last_event_id = 0, None
        assert (state_of(session), agents.__dict__) == before, kind
    assert {kind.type for kind in LostCommands.appliers} <= APPLIED


@pytest.mark.thorough
async def test_a_log_is_applied_like_the_events_that_were_written_to_it(tasks: TaskGroup) -> None:
    chance = random.Random(3)
    for _ in range(400):
        records = [odd(record, chance) for record in conversation(chance)]
        replayed, decoded = (make_session(tasks, script=[]).session for _ in range(2))
        decoded.settings = replace(replayed.settings)

        replay_events(replayed, log_of(records).stored())
        for record in records:
            decoded.apply(record["id"], decode_payload(record["type"], record["data"]))

        assert state_of(replayed) == state_of(decoded), records


async def test_each_command_that_was_left_running_is_reported(tasks: TaskGroup) -> None:
    session = make_session(tasks, script=[]).session
    records = [
        record
        for number in (1, 2)
        for record in (
            start(f"call-{number}", "bash", {"command": f"sleep {number}", "mode": "async"}),
            complete(f"call-{number}", {"content": f"{STARTED}shell-{number}>"}),
        )
    ]

    replay_events(session, log_of(records).stored())

    told = [notification.content for notification in sub_agents(session).commands.take_untold()]
    assert ["sleep 1" in told[0], "sleep 2" in told[1]] == [True, True]


def conversation(chance: random.Random) -> list[dict[str, Any]]:
    """Return the records of a few turns with client tools."""
    records: list[dict[str, Any]] = []
    for turn in range(3):
        calls = [f"call-{turn}-{number}" for number in range(chance.randrange(3))]
        prompt = {"content": f"prompt {turn}", "messageId": f"m{turn}", "transformedContent": f"<x> prompt {turn}"}
        records.append({"type": "user.message", "id": f"m{turn}", "data": prompt | {"agentMode": "plan"}})
        requests = [
            {"toolCallId": call, "name": "add", "arguments": {"b": 1, "a": [call]}, "type": "function"}
            for call in calls
        ]
        answer = {"messageId": f"a{turn}", "content": chance.choice(("", "text")), "toolRequests": requests}
        records.append({"type": "assistant.message", "id": f"a{turn}", "data": answer | {"outputTokens": 5}})
        for call in calls:
            records.append(start(call, "add", {"a": 1}))
            records.append(complete(call, {"content": f"result of {call}"}))
    return records


def start(call: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    data = {"toolCallId": call, "toolName": name, "arguments": arguments}
    return {"type": "tool.execution_start", "id": f"s-{call}", "data": data}


def complete(call: str, result: dict[str, Any]) -> dict[str, Any]:
    data = {"toolCallId": call, "success": True, "result": result, "turnId": "0"}
    return {"type": "tool.execution_complete", "id": f"c-{call}", "data": data}


ODD: Final = {
    "source": "system",
    "attachments": [],
    "delivery": "steering",
    "agentMode": "other",
    "isAutopilotContinuation": True,
    "interactionId": "i1",
    "interrupted": True,
    "providerBlocks": [{"type": "reasoning", "text": "so", "provider": "p", "data": 1}],
    "reasoningText": "so",
    "argumentsJson": '{ "a": 1 }',
    "arguments": "not an object",
    "type": "other",
    "error": {"message": "broken"},
    "effectiveArguments": {"a": 2},
    "isUserRequested": True,
    "detailedContent": "--- a/x\n+++ b/x\n+line",
    "binaryResultsForLlm": [],
    "toolTelemetry": {"exitCode": 1},
    "success": False,
    "unknown": 1,
}
"""Members that change how a record is applied, or make it invalid."""


def odd(record: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """Return a record, sometimes with a member added, left out, or of another type, at any depth."""
    record = copy.deepcopy(record)
    if chance.random() < 0.6:
        return record
    part: dict[str, Any] = record["data"]
    while (inner := parts_of(part)) and chance.random() < 0.5:
        part = chance.choice(inner)
    if chance.random() < 0.6:
        name = chance.choice(list(ODD))
        part[name] = ODD[name]
    elif part:
        name = chance.choice(sorted(part))
        other: tuple[Any, ...] = (None, 1, "", True, {}, [], [1], "text")
        part[name] = chance.choice(other)
        if chance.random() < 0.4:
            del part[name]
    return record


def parts_of(part: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the objects in an object, also those in its lists."""
    members = [
        item
        for value in part.values()
        for item in (cast("list[Any]", value) if isinstance(value, list) else [value])
    ]
    return [cast("dict[str, Any]", item) for item in members if isinstance(item, dict)]


def state_of(session: Session) -> Any:
    """Return everything that events may change."""
    history = {name: value for name, value in vars(session.history).items() if name != "conversation"}
    conversation = session.history.conversation
    changing = (history, vars(conversation), session.metrics, session.schedules.entries())
    return *copy.deepcopy(changing), replace(session.settings)
