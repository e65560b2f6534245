"""One replica whose sessions are in JetStream: everything works as with files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.nats import running_nats
from tests.support.server import JsonObject, running_server, scripted

SCRIPT = scripted({"text": "first"}, {"text": "second"})

pytestmark = pytest.mark.anyio


def answers(events: list[JsonObject]) -> list[str]:
    return [event["data"]["content"] for event in events if event["type"] == "assistant.message"]


async def test_a_session_outlives_its_process_without_its_files(tmp_path: Path) -> None:
    async with running_nats(tmp_path) as nats:
        config = nats.config()
        async with running_server(tmp_path / "one", config=config) as server:
            session = await server.wire.create(SCRIPT)
            events = await server.wire.prompt(session, "remember me")
            assert answers(events) == ["first"]
            before = (await server.wire.call("session.getMessages", {"sessionId": session}))["events"]
        async with running_server(tmp_path / "two", config=config) as server:
            listed = (await server.wire.call("session.list", {}))["sessions"]
            assert [(found["sessionId"], found["summary"]) for found in listed] == [(session, "remember me")]
            await server.wire.call("session.resume", {"sessionId": session, "provider": SCRIPT})
            after = (await server.wire.call("session.getMessages", {"sessionId": session}))["events"]
            assert after[: len(before)] == before
            events = await server.wire.prompt(session, "again")
            assert answers(events) == ["second"]
            assert (await server.wire.call("session.delete", {"sessionId": session}))["success"]
            assert (await server.wire.call("session.list", {}))["sessions"] == []
            await server.wire.error_of("session.resume", {"sessionId": session})
