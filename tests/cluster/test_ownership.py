"""Sessions that a replica claims while servers of NATS know less than others."""

from __future__ import annotations

from pathlib import Path

import anyio
import anyio.lowlevel
import orjson
import pytest

from jumpseat.cluster.cluster import Cluster
from jumpseat.cluster.nats import jetstream
from jumpseat.cluster.nats.settings import cluster_settings
from jumpseat.cluster.sessions.index import IndexEntry
from jumpseat.cluster.sessions.records import Record
from jumpseat.config import StoreConfig
from jumpseat.errors import SessionNotFoundError
from tests.support.nats import running_nats

pytestmark = pytest.mark.anyio


async def test_a_listed_session_is_waited_for_when_a_server_has_no_records_of_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    async with running_nats(tmp_path) as nats, anyio.create_task_group() as tasks:
        settings = cluster_settings(StoreConfig(url=nats.url, patience_s=2), {})
        async with jetstream.connect(settings, "test") as stream:
            cluster = Cluster(stream, settings, tmp_path, tasks)
            await cluster.start()
            for session in ("late", "never"):
                await cluster.index.put(IndexEntry(session, 1, None, None, None, None))
            await cluster.index.catch_up()
            claimed: list[str] = []

            async def claim() -> None:
                assert not await cluster.ownerships.claim("late")
                claimed.append("late")

            async with anyio.create_task_group() as claiming:
                claiming.start_soon(claim)
                while "no records of session late" not in caplog.text:
                    await anyio.lowlevel.checkpoint()
                assert claimed == []
                record = Record("events", orjson.dumps({"id": "1", "type": "session.start", "data": {}}) + b"\n")
                await stream.append(stream.names.log("late"), record.data, "1", 0, record.headers(1))
            assert claimed == ["late"]
            # Its replica was killed before it stored anything.
            with pytest.raises(SessionNotFoundError):
                await cluster.ownerships.claim("never")
            tasks.cancel_scope.cancel()
