"""``secrets.addFilterValues`` over the real wire: masking in events, logs and errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.server import calls, running_server, scripted

pytestmark = pytest.mark.anyio

SECRET = "hunter2-is-the-password"


async def test_a_registered_value_is_in_no_event_no_log_and_no_file(tmp_path: Path) -> None:
    script = scripted(
        calls("bash", command=f"echo {SECRET}; seq 20000; echo {SECRET}"), {"text": f"It is {SECRET}."}
    )
    async with running_server(tmp_path, args=["--yolo"]) as server:
        assert await server.wire.call("secrets.addFilterValues", {"values": [SECRET]}) == {"ok": True}
        session = await server.wire.create(script, streaming=True)
        await server.wire.prompt(session, f"My password is {SECRET}")
        messages = await server.wire.call("session.getMessages", {"sessionId": session})
        await server.wire.call("session.log", {"sessionId": session, "message": f"psst: {SECRET}"})
        listing = await server.wire.call("session.list")
        shown = json.dumps([message for message in server.wire.messages if "method" in message])
        stored = [path for path in server.home.rglob("*") if path.is_file() and SECRET in path.read_text()]
    assert SECRET not in shown
    assert SECRET not in json.dumps([messages, listing])
    assert stored == []
    assert "My password is [redacted]" in shown
    assert "It is [redacted]." in shown
    assert any("copilot-tool-output" in str(path) for path in server.home.rglob("*"))


async def test_a_value_streamed_in_pieces_is_masked(tmp_path: Path) -> None:
    script = scripted(
        {"deltas": ["It is hun", "ter2-is", "-the-password", ", not hunt", "ing"], "reasoning": SECRET}
    )
    async with running_server(tmp_path) as server:
        await server.wire.call("secrets.addFilterValues", {"values": [SECRET]})
        session = await server.wire.create(script, streaming=True)
        events = await server.wire.prompt(session)
    told = "".join(event["data"]["deltaContent"] for event in events if event["type"] == "assistant.message_delta")
    (message,) = [event["data"]["content"] for event in events if event["type"] == "assistant.message"]
    assert told == message == "It is [redacted], not hunting"


async def test_earlier_events_are_masked_when_they_are_read(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(scripted({"text": f"It is {SECRET}."}))
        await server.wire.prompt(session)
        await server.wire.call("secrets.addFilterValues", {"values": [SECRET]})
        told: list[Any] = [
            await server.wire.call("session.getMessages", {"sessionId": session}),
            await server.wire.call("session.eventLog.read", {"sessionId": session}),
        ]
    assert all("It is [redacted]." in json.dumps(event) for event in told)
    assert SECRET not in json.dumps(told)


async def test_errors_and_the_servers_log_are_masked(tmp_path: Path) -> None:
    async with running_server(tmp_path, args=["--log-level", "debug"]) as server:
        await server.wire.call("secrets.addFilterValues", {"values": [SECRET]})
        error = await server.wire.error_of("session.send", {"sessionId": f"x{SECRET}", "prompt": "hi"})
        await server.wire.call("sessions.bulkDelete", {"sessionIds": [SECRET]})
        session = await server.wire.create(
            scripted({"errors": [{"status": 401, "message": f"bad key {SECRET}"}]}), sessionId=SECRET
        )
        await server.wire.prompt(session)
        failed = await server.wire.event("session.error")
        await server.wire.call("session.destroy", {"sessionId": session})
        (server.log_of(session).parent / "inuse.1.lock").touch()
        await server.wire.call("session.resume", {"sessionId": session})
    assert error["message"] == "Session not found: x[redacted]"
    assert "bad key [redacted]" in failed["data"]["message"]
    assert "session [redacted] is marked as in use" in server.stderr
    assert SECRET not in server.stderr


async def test_an_open_permission_request_is_masked(tmp_path: Path) -> None:
    script = scripted(calls("bash", command=f"curl -u me:{SECRET} http://x"), {"text": "done"})
    async with running_server(tmp_path) as server:
        await server.wire.call("secrets.addFilterValues", {"values": [SECRET]})
        session = await server.wire.create(script, requestPermission=True)
        await server.wire.call("session.send", {"sessionId": session, "prompt": "go"})
        request = await server.wire.event("permission.requested")
        waiting = await server.wire.call("session.permissions.pendingRequests", {"sessionId": session})
        await server.wire.call("session.abort", {"sessionId": session})
    assert waiting["items"][0]["permissionRequest"] == request["data"]["permissionRequest"]
    assert SECRET not in json.dumps(waiting)
    assert "[redacted]" in json.dumps(waiting)


async def test_values_that_cannot_be_masked_are_refused(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        for wrong in ({}, {"values": SECRET}, {"values": [7]}):
            error = await server.wire.error_of("secrets.addFilterValues", wrong)
            assert error["code"] == -32602
            assert SECRET not in error["message"]
        short = await server.wire.error_of("secrets.addFilterValues", {"values": ["abc"]})
        assert "abc" not in short["message"]
        assert await server.wire.call("secrets.addFilterValues", {"values": [""]}) == {"ok": True}
