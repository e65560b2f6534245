"""Appends that NATS refuses: because of another owner, or because a server answers that knows less than before."""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from jumpseat.cluster.nats import jetstream
from jumpseat.cluster.nats.connection import WrongSequenceError
from jumpseat.cluster.nats.jetstream import JetStream
from jumpseat.cluster.nats.settings import cluster_settings
from jumpseat.config import StoreConfig
from tests.support.nats import Nats, Node, running_nats

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def connected(nats: Nats) -> AsyncGenerator[tuple[JetStream, str]]:
    """Connect as a replica does, and name the subject of a session."""
    async with jetstream.connect(cluster_settings(StoreConfig(url=nats.url), {}), "test") as stream:
        yield stream, stream.names.log("one")


async def stored(stream: JetStream, subject: str, last: int) -> list[bytes]:
    return [message.data async for message in stream.read(subject, last)]


async def restart(node: Node, data: Path, kept: Path) -> None:
    """Let a server go on with other data, and keep those of before."""
    node.kill()
    (node.folder / "data").rename(kept)
    shutil.copytree(data, node.folder / "data")
    node.start()


async def test_an_append_waits_for_a_server_that_lacks_what_it_has_acknowledged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_nats(tmp_path) as nats, connected(nats) as (stream, subject):
        (node,) = nats.nodes
        bucket, seqs, revisions = stream.names.owners, [0], [0]
        for number in range(2):
            message_id = f"id-{number}"
            seqs.append(await stream.append(subject, message_id.encode(), message_id, seqs[-1], {}))
            revisions.append(await stream.set_value(bucket, "key", number, revisions[-1], message_id))
            if number == 0:
                node.kill()
                shutil.copytree(node.folder / "data", tmp_path / "before")
                node.start()
        await restart(node, tmp_path / "before", tmp_path / "all")
        done: dict[str, object] = {}

        async def append() -> None:
            done["append"] = await stream.append(subject, b"id-2", "id-2", seqs[-1], {})

        async def set_value() -> None:
            done["set"] = await stream.set_value(bucket, "key", 2, revisions[-1], "id-2")

        async def look() -> None:
            done["look"] = await stream.has_revision(bucket, "key", revisions[-1])

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(append)
            tasks.start_soon(look)
            while caplog.text.count("NATS has no message 2") < 2:
                await anyio.lowlevel.checkpoint()
            assert done == {}
            await restart(node, tmp_path / "all", tmp_path / "lagging")
        assert done == {"append": 3, "look": True}
        await set_value()
        assert done["set"] == 3
        assert await stored(stream, subject, 3) == [b"id-0", b"id-1", b"id-2"]


async def test_an_append_is_refused_where_another_owner_has_written_or_removed_messages(tmp_path: Path) -> None:
    async with running_nats(tmp_path) as nats, connected(nats) as (stream, subject):
        first = await stream.append(subject, b"one", "id-1", 0, {})
        # The answer was lost: repeated, the message is not stored again.
        assert await stream.append(subject, b"one", "id-1", 0, {}) == first
        other = await stream.append(subject, b"of another owner", "id-2", first, {})
        with pytest.raises(WrongSequenceError) as refused:
            await stream.append(subject, b"two", "id-3", first, {})
        assert refused.value.last is not None
        assert refused.value.last.data == b"of another owner"
        await stream.purge("one")
        with pytest.raises(WrongSequenceError) as refused:
            await stream.append(subject, b"two", "id-4", other, {})
        assert refused.value.last is None
