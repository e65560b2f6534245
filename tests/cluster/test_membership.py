"""What a replica believes about others."""

from __future__ import annotations

from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from jumpseat.cluster.nats import jetstream
from jumpseat.cluster.nats.settings import cluster_settings
from jumpseat.cluster.replicas.membership import Membership
from jumpseat.config import StoreConfig
from tests.support.nats import running_nats

pytestmark = pytest.mark.anyio


async def test_a_replica_that_is_not_known_yet_is_asked_whether_it_is_there(tmp_path: Path) -> None:
    async with running_nats(tmp_path) as nats, anyio.create_task_group() as tasks:
        settings = cluster_settings(StoreConfig(url=nats.url), {})
        async with jetstream.connect(settings, "test") as stream:
            membership = Membership(stream, settings, tasks, dict)
            await membership.start()

            def answer(_subject: str, _data: bytes, reply: str) -> None:
                tasks.start_soon(stream.send, reply, b"newcomer")

            await stream.listen(stream.names.to("newcomer", "ping"), answer)
            assert not await membership.has_gone("newcomer")
            assert await membership.has_gone("nobody")
            tasks.cancel_scope.cancel()


async def test_a_replica_looks_at_its_sessions_each_time_another_one_tells_that_it_has_taken_some(
    tmp_path: Path,
) -> None:
    async with running_nats(tmp_path) as nats, anyio.create_task_group() as tasks:
        settings = cluster_settings(StoreConfig(url=nats.url), {})
        async with jetstream.connect(settings, "test") as stream:
            owner, other = (Membership(stream, settings, tasks, dict) for _ in range(2))
            await owner.start()
            await other.start()
            for taken in range(1, 3):
                other.note_taken(owner.id)
                await other.beat()
                while not owner.doubtful:
                    await anyio.lowlevel.checkpoint()
                assert owner.doubts == taken
                owner.settle(taken)
            tasks.cancel_scope.cancel()
