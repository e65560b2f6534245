"""Clients on different replicas use the same sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.replicas import answers, running_replicas
from tests.support.server import calls, scripted

pytestmark = pytest.mark.anyio

TOOL = {
    "name": "weather",
    "description": "Tell the weather",
    "parameters": {"type": "object"},
    "skipPermission": True,
}
FIVE = scripted(*({"text": f"answer {number}"} for number in range(5)))


async def test_a_session_is_created_here_prompted_there_and_its_tool_call_answered_from_a_third(
    tmp_path: Path,
) -> None:
    script = scripted(calls("weather"), {"text": "it is sunny"})
    async with running_replicas(tmp_path) as replicas:
        first, second, third = [await replicas.connect(number) for number in range(3)]
        session = await first.create(script, tools=[TOOL])
        for other in (second, third):
            await other.call("session.resume", {"sessionId": session, "provider": script})
        await second.call("session.send", {"sessionId": session, "prompt": "the weather?"})
        question = await third.event("external_tool.requested", session=session)
        answer = {"sessionId": session, "requestId": question["data"]["requestId"], "result": "sunny"}
        assert (await third.call("session.tools.handlePendingToolCall", answer))["success"]
        assert not (await second.call("session.tools.handlePendingToolCall", answer))["success"]
        for wire in (first, second, third):
            await wire.event("session.idle", session=session)
            assert answers(wire.events(session))[-1] == "it is sunny"
        # All clients got the same events in the same order, from the second one's prompt on.
        streams = [[event["id"] for event in wire.events(session)] for wire in (first, second, third)]
        begin = next(event["id"] for event in third.events(session) if event["type"] == "user.message")
        tails = [stream[stream.index(begin) :] for stream in streams]
        assert len(tails[0]) > 5
        assert tails[0] == tails[1] == tails[2]


async def test_a_permission_is_asked_and_answered_through_another_replica(tmp_path: Path) -> None:
    script = scripted(calls("bash", command="echo done > made", description="make"), {"text": "made"})
    async with running_replicas(tmp_path, 2) as replicas:
        first, second = await replicas.connect(0), await replicas.connect(1)
        session = await first.create(script)
        await second.call("session.resume", {"sessionId": session, "provider": script, "requestPermission": True})
        await first.call("session.send", {"sessionId": session, "prompt": "go"})
        asked = await second.event("permission.requested", session=session)
        await second.call(
            "session.permissions.handlePendingPermissionRequest",
            {"sessionId": session, "requestId": asked["data"]["requestId"], "result": {"kind": "approve-once"}},
        )
        await first.event("session.idle", session=session)
        completed = await first.event("tool.execution_complete", session=session)
        assert completed["data"]["success"]


async def test_a_request_of_the_owner_to_a_client_of_another_replica_is_answered(tmp_path: Path) -> None:
    script = scripted(calls("ask_user", question="Which one?"), {"text": "thanks"})
    async with running_replicas(tmp_path, 2) as replicas:
        first, second = await replicas.connect(0), await replicas.connect(1)
        session = await first.create(script)
        await second.call("session.resume", {"sessionId": session, "provider": script, "requestUserInput": True})
        await first.call("session.send", {"sessionId": session, "prompt": "go"})
        request = await second.until(lambda message: message.get("method") == "userInput.request")
        await second.answer(request, {"answer": "the blue one", "wasFreeform": True})
        await first.event("session.idle", session=session)
        completed = await first.event("tool.execution_complete", session=session)
        assert "the blue one" in completed["data"]["result"]["content"]


async def test_lists_and_notifications_are_of_the_whole_cluster(tmp_path: Path) -> None:
    async with running_replicas(tmp_path, 2) as replicas:
        first, second = await replicas.connect(0), await replicas.connect(1)
        session = await first.create(FIVE)
        await second.until(
            lambda message: (
                message.get("method") == "session.lifecycle"
                and message["params"]["type"] == "session.created"
                and message["params"]["sessionId"] == session
            )
        )
        await first.prompt(session, "what is this about?")
        listed = (await second.call("session.list", {}))["sessions"]
        assert [(entry["sessionId"], entry["summary"]) for entry in listed] == [(session, "what is this about?")]
        metadata = await second.call("session.getMetadata", {"sessionId": session})
        assert metadata["session"]["summary"] == "what is this about?"
        fork = (await second.call("sessions.fork", {"sessionId": session}))["sessionId"]
        await second.call("session.resume", {"sessionId": fork, "provider": FIVE})
        assert answers(await second.prompt(fork, "and now?")) == ["answer 1"]
        page = await first.call("sessions.readPersistedEvents", {"sessionId": fork})
        assert page["events"]
        assert (await second.call("session.delete", {"sessionId": session}))["success"]
        assert [entry["sessionId"] for entry in (await first.call("session.list", {}))["sessions"]] == [fork]
        await first.error_of("session.send", {"sessionId": session, "prompt": "gone"})


async def test_a_session_moves_when_its_replica_drains(tmp_path: Path) -> None:
    async with running_replicas(tmp_path, 2) as replicas:
        first, second = await replicas.connect(0), await replicas.connect(1)
        session = await first.create(FIVE)
        await first.prompt(session)
        await second.call("session.resume", {"sessionId": session, "provider": FIVE})
        await replicas.servers[0].end()
        assert answers(await second.prompt(session)) == ["answer 1"]
