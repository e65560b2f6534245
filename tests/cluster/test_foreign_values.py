"""Values that another program has written into the buckets of a cluster are skipped; replicas go on, and start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nats
import pytest

from jumpseat.cluster.nats.names import Names, token_of
from tests.cluster.replicas import running_replicas
from tests.cluster.test_documents import until_setting
from tests.support.nats import running_nats
from tests.support.server import scripted

pytestmark = pytest.mark.anyio

FOREIGN = (
    b"no JSON",
    b"\xff\xfe",
    b"[]",
    b'"text"',
    b"7",
    b"[" * 5000,
    b'{"replica": {}, "taken": [], "changedNs": {}, "createdBy": [], "host": {}, "cwd": 1, "metadata": "x"}',
    b'{"replica": 1, "taken": {"x": "y"}, "changedNs": 1e300, "size": 99999999999999999999, "relay": [[]]}',
)


async def test_replicas_skip_values_that_they_cannot_read(tmp_path: Path) -> None:
    names = Names("jumpseat")
    async with running_nats(tmp_path, 1) as servers:
        async with running_replicas(tmp_path / "first", 1, given=servers) as replicas:
            wire = await replicas.connect(0)
            session = await wire.create(scripted({"text": "one"}))
            await wire.prompt(session)
            client: Any = await nats.connect(servers.nodes[0].url)  # pyright: ignore[reportUnknownMemberType]
            for bucket in (names.user, names.index, names.replicas, names.owners):
                for number, value in enumerate(FOREIGN):
                    for key in (f"key{number}", token_of(f"session-{number}"), "settings.json", "settings"):
                        await client.jetstream().publish(f"$KV.{bucket}.{key}", value)
            await client.close()
            # Changes are seen in their order: the others are behind this replica.
            await wire.call("user.settings.set", {"settings": {"reasoningEffort": "low"}})
            await until_setting(wire, "reasoningEffort", "low")
            assert [one["sessionId"] for one in (await wire.call("session.list", {}))["sessions"]] == [session]
            for number in range(len(FOREIGN)):
                await wire.create(scripted({"text": "x"}), sessionId=f"session-{number}")
        async with running_replicas(tmp_path / "second", 1, given=servers) as replicas:
            wire = await replicas.connect(0)
            await wire.call("session.resume", {"sessionId": session, "provider": scripted({"text": "two"})})
            events = await wire.prompt(session)
            assert "session.idle" in [event["type"] for event in events]
            assert "is skipped" in replicas.servers[0].stderr
