"""An answer with thousands of tool calls holds up nobody else, and each call gets its one result."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.support.server import JsonObject, running_server, scripted

pytestmark = pytest.mark.anyio

COUNT = 2000
TOO_MANY = 2049


def call(number: int) -> JsonObject:
    forms: list[JsonObject] = [
        {"path": "f"},
        {"command": "cat f; " + "echo 'a b' $(cat x) " * 100, "description": "x"},
        {},
    ]
    name = ("view", "bash", "no_such_tool")[number % len(forms)]
    return {"id": f"c{number}", "name": name, "arguments": forms[number % len(forms)]}


async def test_other_clients_are_served_while_thousands_of_calls_are_handled(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x\n")
    turn = {"tool_calls": [call(number) for number in range(COUNT)]}
    async with running_server(tmp_path, tcp=True) as server, server.connect() as wire, server.connect() as other:
        session = await wire.create(scripted(turn, {"text": "done"}), workingDirectory=str(tmp_path))
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        pings = 0
        while not any(event["type"] == "session.idle" for event in wire.events(session)):
            await other.check_alive()
            pings += 1
        # One event loop: had the calls held it up, no ping would have been answered before their end.
        assert pings > 10
        ended = [event["data"] for event in wire.events(session) if event["type"] == "tool.execution_complete"]
    assert Counter(data["toolCallId"] for data in ended) == {f"c{number}": 1 for number in range(COUNT)}
    assert sum("only the first 128 calls" in str(data.get("error")) for data in ended) == COUNT - 128


async def test_an_answer_with_too_many_calls_is_malformed(tmp_path: Path) -> None:
    many: list[JsonObject] = [{"id": f"c{number}", "name": "view", "arguments": {}} for number in range(TOO_MANY)]
    async with running_server(tmp_path, config="[retry]\nattempts = 1\n") as server:
        session = await server.wire.create(scripted({"tool_calls": many}))
        events = await server.wire.prompt(session, "go")
    (failed,) = [event["data"] for event in events if event["type"] == "session.error"]
    assert "the answer has more than 2048 tool calls" in failed["message"]
    assert not [event for event in events if event["type"] == "tool.execution_start"]
