"""Servers of NATS that are full, leave in their lame duck mode, change leaders, or cannot reach each other."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from nats.aio.client import Client

from tests.cluster.replicas import Replicas, answers, running_replicas
from tests.support.limits import WAIT_S
from tests.support.nats import Nats, Node, running_nats, running_split_nats
from tests.support.server import JsonObject, Wire

pytestmark = pytest.mark.anyio

LOG = "jumpseat-log"
PATIENCE_S = 5.0
"""The time that requests wait, for tests that wait for its end: the default is for elections of NATS."""
MANY = {"type": "scripted", "script": {"turns": [{"text": "an answer"}], "after_last": "repeat"}}


@asynccontextmanager
async def admin(nats: Nats) -> AsyncGenerator[Any]:
    """Connect to NATS beside the replicas."""
    # Its options are untyped.
    client: Any = Client()
    await client.connect(nats.url.split(","), connect_timeout=2, max_reconnect_attempts=-1, reconnect_time_wait=0.1)
    try:
        yield client
    finally:
        await client.close()


async def stored_ids(wire: Wire, session: str) -> list[str]:
    events = (await wire.call("session.getMessages", {"sessionId": session}))["events"]
    return [event["id"] for event in events]


def announced_ids(wire: Wire, session: str) -> list[str]:
    return [event["id"] for event in wire.events(session) if not event.get("ephemeral")]


async def until_served(wire: Wire, method: str, params: JsonObject) -> Any:
    """Repeat a request for as long as it cannot be stored, and return its result."""
    while True:
        answer = await wire.response(await wire.ask(method, params))
        if "error" not in answer:
            return answer["result"]
        assert answer["error"]["data"]["code"] in ("store_unavailable", "outcome_unknown"), answer
        await anyio.sleep(0.1)


async def test_a_full_disk_is_told_and_once_there_is_space_sessions_go_on(tmp_path: Path) -> None:
    async with (
        running_nats(tmp_path, 3, space="6M") as nats,
        running_replicas(tmp_path, 2, given=nats, limit_s=90, patience_s=PATIENCE_S) as replicas,
    ):
        wire, other = [await replicas.connect(number) for number in range(2)]
        session, big = await wire.create(MANY), await other.create(MANY)
        await wire.prompt(session)
        await other.prompt(big)
        answer: JsonObject = {}
        while "error" not in answer:
            path = f"{len(other.messages)}.txt"
            file = {"sessionId": big, "path": path, "content": "x" * 900_000}
            answer = await other.response(await other.ask("session.workspaces.createFile", file))
        assert answer["error"]["data"]["code"] in ("store_unavailable", "outcome_unknown")
        since = len(wire.messages)
        send = {"sessionId": session, "prompt": "more"}
        refused = await wire.response(await wire.ask("session.send", send))
        if "error" not in refused:
            # The replica did not know yet: the prompt waits, and is announced when it is stored.
            assert announced_ids(wire, session)[-1] in await stored_ids(wire, session)
        else:
            assert refused["error"]["data"]["code"] in ("store_unavailable", "outcome_unknown")
            assert not [event for event in wire.events(session, since=since) if not event.get("ephemeral")]
        for node in nats.nodes:
            node.kill()
            node.give_space("1G")
            node.start()
        await until_served(wire, "session.send", send | {"wait": True})
        ids = await stored_ids(wire, session)
        assert len(ids) == len(set(ids))
        assert [known for known in announced_ids(wire, session) if known not in ids] == []
        listed = await until_served(other, "sessions.list", {})
        assert {entry["sessionId"] for entry in listed["sessions"]} == {session, big}


async def test_no_request_hangs_when_nats_is_gone(tmp_path: Path) -> None:
    async with running_replicas(tmp_path, 1, limit_s=80, patience_s=PATIENCE_S) as replicas:
        wire = await replicas.connect(0)
        live, stored = await wire.create(MANY), await wire.create(MANY)
        for session in (live, stored):
            await wire.prompt(session)
        await wire.call("session.detach", {"sessionId": stored})
        requests: dict[str, JsonObject] = {
            "session.create": {"provider": MANY},
            "session.resume": {"sessionId": stored, "provider": MANY},
            "session.delete": {"sessionId": stored},
            "session.plan.update": {"sessionId": live, "content": "# more"},
            "session.list": {},
            "sessions.pruneOld": {"olderThanDays": 0},
            "sessions.getClientMetadata": {"sessionIds": [live, stored]},
            "user.settings.set": {"settings": {"model": "other"}},
        }
        replicas.nats.nodes[0].kill()
        # At once: the replica finds out while they are under way.
        asked = {method: await wire.ask(method, params) for method, params in requests.items()}
        for method, number in asked.items():
            answer = await wire.response(number)
            assert "error" in answer, method
            assert answer["error"]["data"]["code"] in ("store_unavailable", "outcome_unknown"), (method, answer)
        replicas.nats.nodes[0].start()
        await until_served(wire, "session.list", {})
        await wire.call("user.settings.set", {"settings": {"model": "other"}})


async def _prompted_during(
    replicas: Replicas, fault: Callable[[Nats, Any], Awaitable[None]], *, after: int
) -> list[list[str]]:
    """Prompt a session again and again through another replica while ``fault`` happens; return the answers."""
    owner, relayed = [await replicas.connect(number) for number in range(2)]
    session = await owner.create(MANY)
    await relayed.call("session.resume", {"sessionId": session, "provider": MANY})
    got: list[list[str]] = []
    done = anyio.Event()

    async def happen() -> None:
        async with admin(replicas.nats) as client:
            await fault(replicas.nats, client)
        done.set()

    async with anyio.create_task_group() as tasks:
        while not done.is_set() or len(got) < 2 * after:
            got.append(answers(await relayed.prompt(session)))
            if len(got) == after:
                tasks.start_soon(happen)
    ids = await stored_ids(owner, session)
    for wire in (owner, relayed):
        # The owner has seen the beginning, too.
        known = announced_ids(wire, session)
        assert known == [event_id for event_id in ids if event_id in set(known)]
        assert len(known) >= len(ids) - 2
    return got


async def test_nobody_notices_that_the_leader_of_the_log_leaves_in_its_lame_duck_mode(tmp_path: Path) -> None:
    async def leave(nats: Nats, _client: Any) -> None:
        node = await nats.leader(LOG)
        assert node is not None
        node.lame_duck()
        await node.wait_until_ended()
        node.start()
        await nats.wait_until_ready()

    async with running_replicas(tmp_path, 2, nodes=3, limit_s=150) as replicas:
        got = await _prompted_during(replicas, leave, after=5)
    assert got == [["an answer"]] * len(got)


async def until_another_leads(nats: Nats, stream: str, before: Node | None) -> None:
    with anyio.fail_after(WAIT_S):
        while (await nats.leader(stream)) in (None, before):
            await anyio.lowlevel.checkpoint()


async def test_nobody_notices_that_streams_change_their_leaders(tmp_path: Path) -> None:
    async def step_down(nats: Nats, client: Any) -> None:
        for _ in range(3):
            for stream in (LOG, "KV_jumpseat-owners", "KV_jumpseat-sessions", "KV_jumpseat-replicas"):
                before = await nats.leader(stream)
                await client.request(f"$JS.API.STREAM.LEADER.STEPDOWN.{stream}", b"", timeout=WAIT_S)
                await until_another_leads(nats, stream, before)

    async with running_replicas(tmp_path, 2, nodes=3, limit_s=90) as replicas:
        got = await _prompted_during(replicas, step_down, after=5)
    assert got == [["an answer"]] * len(got)


@pytest.mark.timeout(180)
async def test_a_client_hears_of_a_session_that_was_taken_while_nats_was_split(tmp_path: Path) -> None:
    async with running_split_nats(tmp_path) as nats:
        urls = [node.url for node in nats.nodes]
        async with running_replicas(tmp_path, 2, given=nats, urls=urls, copies=3, limit_s=110) as replicas:
            owner, other = await replicas.connect(0), await replicas.connect(1)
            session = await owner.create(MANY)
            nats.cut_off(nats.nodes[0])
            # The owner keeps its connection, and has no reason to write anything.
            resume = {"sessionId": session, "provider": MANY}
            await until_served(other, "session.resume", resume)
            nats.join(nats.nodes[0])
            since = len(owner.messages)
            await until_served(other, "session.send", {"sessionId": session, "prompt": "go"})
            await owner.event("session.idle", session=session, since=since)
            assert answers(owner.events(session, since=since)) == ["an answer"]
            # NATS may still be electing leaders, so a replica would need more time to end than others.
            for server in replicas.servers:
                await server.kill()
