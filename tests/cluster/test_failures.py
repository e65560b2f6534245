"""Replicas that are killed, stopped, or cut off from NATS while their sessions are busy."""

from __future__ import annotations

import signal
from pathlib import Path

import anyio
import pytest

from tests.cluster.replicas import answers, running_replicas
from tests.support.nats import running_nats
from tests.support.server import calls, scripted
from tests.support.tcp_forwarder import forwarder

pytestmark = pytest.mark.anyio

TOOL = {
    "name": "weather",
    "description": "Tell the weather",
    "parameters": {"type": "object"},
    "skipPermission": True,
}
PATIENCE_S = 5.0
"""The time that requests wait, for tests that wait for its end: the default is for elections of NATS."""
WAITING = scripted(calls("weather"), {"text": "it is sunny"}, {"text": "once more"}, {"text": "and again"})


async def test_a_session_whose_owner_is_killed_goes_on_where_its_other_client_is(tmp_path: Path) -> None:
    async with running_replicas(tmp_path, 2) as replicas:
        owner, other = await replicas.connect(0), await replicas.connect(1)
        session = await owner.create(WAITING, tools=[TOOL])
        await other.call("session.resume", {"sessionId": session, "provider": WAITING})
        await other.call("session.send", {"sessionId": session, "prompt": "the weather?"})
        await other.event("external_tool.requested", session=session)
        seen = [event["id"] for event in other.events(session) if not event.get("ephemeral")]
        since = len(other.messages)
        await replicas.servers[0].kill()
        warning = await other.event("session.warning", session=session, since=since, warningType="taken_over")
        idle = await other.event("session.idle", session=session, since=since)
        assert idle["data"]["aborted"]
        kinds = [event["type"] for event in other.events(session, since=since)]
        assert kinds.count("session.idle") == 1
        assert "abort" in kinds
        stored = (await other.call("session.getMessages", {"sessionId": session}))["events"]
        ids = [event["id"] for event in stored]
        assert len(ids) == len(set(ids))
        assert set(seen) <= set(ids)
        assert warning["id"] in ids
        ends = [event for event in stored if event["type"] == "tool.execution_complete"]
        assert [end["data"]["toolCallId"] for end in ends] == ["call-1"]
        assert answers(await other.prompt(session)) == ["it is sunny"]


async def test_with_continue_pending_work_the_question_is_asked_again_and_the_turn_goes_on(tmp_path: Path) -> None:
    async with running_replicas(tmp_path, 2) as replicas:
        owner, other = await replicas.connect(0), await replicas.connect(1)
        session = await owner.create(WAITING)
        await other.call(
            "session.resume",
            {"sessionId": session, "provider": WAITING, "tools": [TOOL], "continuePendingWork": True},
        )
        await other.call("session.send", {"sessionId": session, "prompt": "the weather?"})
        await other.event("external_tool.requested", session=session)
        since = len(other.messages)
        await replicas.servers[0].kill()
        again = await other.event("external_tool.requested", session=session, since=since)
        answer = {"sessionId": session, "requestId": again["data"]["requestId"], "result": "sunny"}
        assert (await other.call("session.tools.handlePendingToolCall", answer))["success"]
        await other.event("session.idle", session=session, since=since)
        events = other.events(session, since=since)
        assert answers(events) == ["it is sunny"]
        assert [event["type"] for event in events].count("tool.execution_complete") == 1


async def test_a_client_that_comes_back_resumes_the_session_of_a_killed_replica_elsewhere(tmp_path: Path) -> None:
    async with running_replicas(tmp_path, 2) as replicas:
        owner, other = await replicas.connect(0), await replicas.connect(1)
        session = await owner.create(WAITING, tools=[TOOL])
        await owner.call("session.send", {"sessionId": session, "prompt": "the weather?"})
        await owner.event("external_tool.requested", session=session)
        await replicas.servers[0].kill()
        await other.call("session.resume", {"sessionId": session, "provider": WAITING, "tools": [TOOL]})
        assert (await other.event("session.idle", session=session))["data"]["aborted"]
        assert answers(await other.prompt(session)) == ["it is sunny"]


async def test_an_owner_that_was_paused_loses_the_session_and_relays_from_then_on(tmp_path: Path) -> None:
    async with running_replicas(tmp_path, 2, limit_s=80, patience_s=PATIENCE_S) as replicas:
        owner, other = await replicas.connect(0), await replicas.connect(1)
        session = await owner.create(WAITING, tools=[TOOL])
        await owner.call("session.send", {"sessionId": session, "prompt": "the weather?"})
        question = await owner.event("external_tool.requested", session=session)
        replicas.servers[0].signal(signal.SIGSTOP)
        try:
            with anyio.fail_after(60):
                await other.call("session.resume", {"sessionId": session, "provider": WAITING})
                await other.event("session.idle", session=session)
        finally:
            replicas.servers[0].signal(signal.SIGCONT)
        since = len(owner.messages)
        # The answer to the question of before is refused, by whichever replica it reaches.
        answer = {"sessionId": session, "requestId": question["data"]["requestId"], "result": "sunny"}
        refused = await owner.response(await owner.ask("session.tools.handlePendingToolCall", answer))
        assert "error" in refused or not refused["result"]["success"]
        # The client is told what has happened, once.
        await owner.event("session.idle", session=session, since=since)
        kinds = [event["type"] for event in owner.events(session, since=since)]
        assert [kinds.count(kind) for kind in ("session.warning", "abort", "session.idle")] == [1, 1, 1]
        assert answers(await other.prompt(session)) == ["it is sunny"]
        await owner.event("assistant.message", session=session, since=since, content="it is sunny")
        stored = (await other.call("session.getMessages", {"sessionId": session}))["events"]
        ids = [event["id"] for event in stored]
        assert len(ids) == len(set(ids))
        assert [event["type"] for event in stored].count("tool.execution_complete") == 1


async def test_a_replica_cut_off_from_nats_refuses_requests_and_comes_back(tmp_path: Path) -> None:
    async with running_replicas(tmp_path, 1, limit_s=80, patience_s=PATIENCE_S) as replicas:
        (client,) = [await replicas.connect(0)]
        session = await client.create(scripted({"text": "before"}, {"text": "after"}))
        await client.prompt(session)
        replicas.nats.nodes[0].kill()
        since = len(client.messages)
        while True:
            answer = await client.response(
                await client.ask("session.send", {"sessionId": session, "prompt": "now"})
            )
            if "error" in answer:
                break
        assert answer["error"]["data"]["code"] in ("store_unavailable", "outcome_unknown")
        assert [event for event in client.events(session, since=since) if not event.get("ephemeral")] == []
        replicas.nats.nodes[0].start()
        await client.event("session.idle", session=session, since=since)
        while True:
            answer = await client.response(await client.ask("session.send", {"sessionId": session, "prompt": "go"}))
            if "error" not in answer:
                break


async def test_a_client_hears_of_an_idle_session_that_was_taken_while_its_replica_was_cut_off(
    tmp_path: Path,
) -> None:
    script = scripted({"text": "hello"})
    async with running_nats(tmp_path) as nats, forwarder(nats.nodes[0].port) as link:
        urls = [f"nats://127.0.0.1:{link.port}", nats.url]
        async with running_replicas(tmp_path, 2, given=nats, urls=urls) as replicas:
            owner, other = await replicas.connect(0), await replicas.connect(1)
            session = await owner.create(script)
            link.accepts = False
            link.cut()
            # Nobody listens for the owner, but its heartbeat is not old.
            await other.call("session.resume", {"sessionId": session, "provider": script})
            link.accepts = True
            since = len(owner.messages)
            assert answers(await other.prompt(session)) == ["hello"]
            await owner.event("session.idle", session=session, since=since)
            assert answers(owner.events(session, since=since)) == ["hello"]


async def test_a_short_break_of_the_connection_to_nats_refuses_no_request(tmp_path: Path) -> None:
    script = {"type": "scripted", "script": {"turns": [{"text": "hello"}], "after_last": "repeat"}}
    async with running_nats(tmp_path) as nats, forwarder(nats.nodes[0].port) as link:
        urls = [f"nats://127.0.0.1:{link.port}"]
        async with running_replicas(tmp_path, 1, given=nats, urls=urls) as replicas:
            client = await replicas.connect(0)
            session = await client.create(script)
            for _ in range(3):
                link.cut()
                # The first may be served before the replica notices; the next wait until it knows its sessions.
                for _ in range(10):
                    assert answers(await client.prompt(session)) == ["hello"]
                    assert len((await client.call("session.list", {}))["sessions"]) == 1


async def test_a_client_that_connects_again_while_its_replica_hangs_has_its_tools_at_once(tmp_path: Path) -> None:
    async with running_replicas(tmp_path, 2) as replicas:
        before, after = await replicas.connect(1), await replicas.connect(0)
        session = await after.create(WAITING)
        resume = {"sessionId": session, "provider": WAITING, "tools": [TOOL]}
        await before.call("session.resume", resume)
        # The client is there: its tool is its own.
        error = await after.error_of("session.resume", resume)
        assert "already registered by another client" in error["message"]
        replicas.servers[1].signal(signal.SIGSTOP)
        try:
            await after.call("session.resume", resume)
        finally:
            replicas.servers[1].signal(signal.SIGCONT)
        await after.call("session.send", {"sessionId": session, "prompt": "the weather?"})
        asked = await after.event("external_tool.requested", session=session)
        answer = {"sessionId": session, "requestId": asked["data"]["requestId"], "result": "sunny"}
        assert (await after.call("session.tools.handlePendingToolCall", answer))["success"]
        await after.event("session.idle", session=session)


async def test_no_request_is_left_without_an_outcome_when_the_replica_of_the_session_drains(tmp_path: Path) -> None:
    script = scripted(*({"text": f"answer {number}"} for number in range(40)))
    async with running_replicas(tmp_path, 2) as replicas:
        owner, other = await replicas.connect(0), await replicas.connect(1)
        session = await owner.create(script)
        await other.call("session.resume", {"sessionId": session, "provider": script})
        asked: list[int] = []
        drained = anyio.Event()

        async def prompt() -> None:
            while not drained.is_set():
                asked.append(await other.ask("session.send", {"sessionId": session, "prompt": "go"}))
                await other.response(asked[-1])

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(prompt)
            while len(asked) < 10:
                await anyio.lowlevel.checkpoint()
            await replicas.servers[0].end()
            drained.set()
        responses = [await other.response(request) for request in asked]
        assert [response["error"] for response in responses if "error" in response] == []
        sent = [response["result"]["messageId"] for response in responses]
        await other.call("session.send", {"sessionId": session, "prompt": "the last one", "wait": True})
        stored = (await other.call("session.getMessages", {"sessionId": session}))["events"]
        prompts = [event["id"] for event in stored if event["type"] == "user.message"]
        assert [prompts.count(message) for message in sent] == [1] * len(sent)
