"""Sessions in the file system of a client are open at one replica only, and go on at any."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest

from jumpseat_client import Client, Session, approve_all, connect_tcp
from jumpseat_protocol.events import AssistantMessage, SessionIdle
from tests.cluster.replicas import Replicas, running_replicas
from tests.sessions.test_session_fs import calling, create, logged, scripted
from tests.support.virtual_disk import VirtualDisk

pytestmark = pytest.mark.anyio


def connect(replicas: Replicas, number: int) -> Any:
    port = replicas.servers[number].port
    assert port is not None
    return connect_tcp("127.0.0.1", port)


def chained(disk: VirtualDisk, session: Session) -> bool:
    """Return whether each event of the stored log names the one before: so there was one writer at a time."""
    events = logged(disk, session)
    parents = [event.get("parentId") for event in events[1:]]
    return parents == [event["id"] for event in events[:-1]]


async def resume(client: Client, session_id: str, *turns: dict[str, Any], **options: Any) -> Session:
    return await client.resume_session(session_id, provider=scripted(*turns), on_permission=approve_all, **options)


async def test_clients_of_two_replicas_share_a_session_that_one_of_them_stores(tmp_path: Path) -> None:
    disk = VirtualDisk()
    async with running_replicas(tmp_path, 2) as replicas, connect(replicas, 0) as owner:
        await disk.offer(owner, sqlite=True)
        session = await create(owner, {"text": "one"}, {"text": "two"}, {"text": "three"})
        async with connect(replicas, 1) as without, connect(replicas, 1) as storing:
            await disk.offer(storing, sqlite=True)
            seen = [await client.resume_session(session.id) for client in (without, storing)]
            assert await session.ask("first") == "one"
            for number, (other, answer) in enumerate(zip(seen, ("two", "three"), strict=True)):
                async with session.events() as events:
                    assert await other.ask(f"more {number}") == answer
                    async for event in events:
                        if isinstance(event.payload, AssistantMessage):
                            assert event.payload.content == answer
                        if isinstance(event.payload, SessionIdle):
                            break
            # Stored through the other replica from here on.
            await owner.request("session.destroy", {"sessionId": session.id})
            await seen[0].detach()
            await seen[1].request("session.plan.update", content="# the plan")
        assert disk.text(session.id, "plan.md") == "# the plan"
        assert chained(disk, session)
        assert not list((tmp_path / "replica0" / "home").rglob("events.jsonl"))


async def test_a_session_goes_on_at_another_replica_when_its_own_is_killed(tmp_path: Path) -> None:
    disk = VirtualDisk()
    stored = anyio.Event()

    async def watch(method: str, params: dict[str, Any]) -> None:
        if method == "appendFile" and "tool.execution_start" in params["content"]:
            stored.set()

    disk.before = watch
    async with running_replicas(tmp_path, 2) as replicas:
        async with connect(replicas, 0) as first:
            await disk.offer(first, cwd=str(tmp_path))
            session = await create(first, calling("bash", command="sleep 60"))
            await session.send("wait")
            await stored.wait()
            await replicas.servers[0].kill()
        async with connect(replicas, 1) as second:
            await disk.offer(second, cwd=str(tmp_path))
            again = await resume(second, session.id, {"text": "back"}, {"text": "back"})
            assert await again.ask("go on") == "back"
            await again.detach()
        events = [orjson.loads(line)["type"] for line in disk.text(session.id, "events.jsonl").splitlines()]
        assert events.count("tool.execution_complete") == 1
        assert events.index("abort") < len(events) - 1 - events[::-1].index("user.message")
        assert chained(disk, session)
