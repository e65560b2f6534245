"""Large files that no record names are removed, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from jumpseat.cluster.nats import jetstream
from jumpseat.cluster.nats.jetstream import JetStream
from jumpseat.cluster.nats.settings import ClusterSettings
from jumpseat.cluster.sessions.housekeeping import remove_orphans
from jumpseat.cluster.sessions.records import Record, object_name
from tests.cluster.test_nats_faults import admin
from tests.support.nats import running_nats

pytestmark = pytest.mark.anyio


async def store(stream: JetStream, session: str, seq: int, file: str, *, named: bool) -> tuple[str, int]:
    """Store a large file behind a message, with its record or without; return its name and the last sequence."""
    name = object_name(session, 7, seq, file)
    await stream.put_object(name, b"x" * 300_000)
    if named:
        record = Record("object", name.encode(), file)
        seq = await stream.append(stream.names.log(session), record.data, name, seq, record.headers(7))
    return name, seq


async def test_large_files_that_no_record_names_are_removed(tmp_path: Path) -> None:
    async with (
        running_nats(tmp_path) as nats,
        jetstream.connect(ClusterSettings((nats.url,), "jumpseat", "here"), "test") as stream,
        admin(nats) as client,
    ):
        owners = stream.names.owners
        first, seq = await store(stream, "one", 0, "a.txt", named=True)
        second, seq = await store(stream, "one", seq, "b/1-2-c.txt", named=True)
        died, seq = await store(stream, "one", seq, "c.txt", named=False)
        # Another owner has gone on behind it.
        seq = await stream.append(stream.names.log("one"), b"claim", "claim", seq, Record("claim", b"").headers(8))
        await stream.set_value(owners, "one", {"replica": "r"}, 0, "owner-1")
        awaited, _ = await store(stream, "one", seq, "d.txt", named=False)
        gone, _ = await store(stream, "two", 5, "a.txt", named=False)
        slash, _ = await store(stream, "one/1-1-x", 0, "a.txt", named=True)
        foreign = "of somebody else"
        await stream.put_object(foreign, b"x")
        await client.jetstream().publish("$O.jumpseat-files.C.broken", b"a part of a file")

        assert await remove_orphans(stream) == []
        removed = await remove_orphans(stream, age_s=0)
        assert sorted(removed) == sorted([died, gone, "$O.jumpseat-files.C.broken"])
        left = {file.name for file in await stream.large_files() if not file.deleted}
        assert left == {first, second, awaited, slash, foreign}
        assert await stream.get_object(second) == b"x" * 300_000
        # Given up: the record cannot follow any more.
        revision, _ = await stream.value(owners, "one")
        await stream.set_value(owners, "one", None, revision, "owner-2")
        assert await remove_orphans(stream, age_s=0) == [awaited]
        assert await remove_orphans(stream, age_s=0) == []
