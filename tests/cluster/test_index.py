"""The list of all sessions: in the order of their changes, by creator and folder, and in pages."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import orjson
import pytest

from jumpseat.cluster.nats import jetstream
from jumpseat.cluster.nats.settings import ClusterSettings
from jumpseat.cluster.sessions.index import PAGE, Index, IndexEntry
from jumpseat.errors import StoreUnavailableError
from jumpseat.store.session.table import Entry
from tests.support.nats import running_nats

pytestmark = pytest.mark.anyio

NAMES = [None, "alice", "bob"]
MANY = PAGE + 5
AT_ONCE = 16
"""Entries that are written at the same time: NATS syncs each to the disk, and each must be stored in time."""


def entry(number: int) -> IndexEntry:
    """Return an entry whose session changed later, the smaller its number is; each tenth was never prompted."""
    metadata = orjson.dumps({"sessionId": f"s{number:04d}"}) if number % 10 else None
    creator = NAMES[number % 3]
    return IndexEntry(
        f"s{number:04d}", MANY - number, creator, None, metadata, f"/projects/{number % 2}", number, False
    )


def numbers(entries: list[Entry]) -> list[int]:
    return [int(orjson.loads(one.json or b"{}")["sessionId"][1:]) for one in entries]


async def put_each(writer: Index, given: range) -> None:
    for number in given:
        await writer.put(entry(number))


@asynccontextmanager
async def filled(folder: Path) -> AsyncGenerator[Index]:
    """Store :data:`MANY` entries, and yield an index that has read them."""
    async with running_nats(folder) as nats, anyio.create_task_group() as tasks:
        settings = ClusterSettings((nats.url,), "jumpseat", "here")
        async with jetstream.connect(settings, "test") as stream:
            writer = Index(stream, tasks)
            async with anyio.create_task_group() as writing:
                for first in range(AT_ONCE):
                    writing.start_soon(put_each, writer, range(first, MANY, AT_ONCE))
            index = Index(stream, tasks, folder / "table")
            await index.start()
            yield index
            index.close()
        tasks.cancel_scope.cancel()


async def test_lists_are_in_the_order_of_changes_also_for_some_creators_or_a_folder(tmp_path: Path) -> None:
    async with filled(tmp_path) as index:
        listed = [number for number in range(MANY) if number % 10]
        assert numbers(list(index.entries())) == listed
        assert index.creators() == NAMES
        for chosen in (["alice"], [None, "bob"], []):
            found = numbers(list(index.entries(created_by=chosen)))
            assert found == [number for number in listed if NAMES[number % 3] in chosen]
        assert index.cwds() == ["/projects/0", "/projects/1"]
        assert numbers(list(index.entries(cwds=["/projects/1"]))) == [number for number in listed if number % 2]
        assert [one.session_id for one in index.all()] == [f"s{number:04d}" for number in range(MANY)]
        assert [one.size for one in index.all(before_ns=4)] == [MANY - 3, MANY - 2, MANY - 1]
        assert [found for found, _ in index.beginning_with("s000")] == [f"s{number:04d}" for number in range(10)]
        assert index.get("s0042") == entry(42)
        assert index.get("s") is None


async def test_a_removed_session_is_in_no_list(tmp_path: Path) -> None:
    async with filled(tmp_path) as index:
        await index.remove("s0001", "once")
        await index.catch_up()
        assert index.get("s0001") is None
        assert numbers(list(index.entries()))[0] == 2


async def test_requests_that_are_under_way_when_a_replica_leaves_get_a_typed_error(tmp_path: Path) -> None:
    async with filled(tmp_path) as index:
        assert index.get("s0001") == entry(1)
        index.close()
        with pytest.raises(StoreUnavailableError):
            index.get("s0001")
        with pytest.raises(StoreUnavailableError):
            list(index.entries())
