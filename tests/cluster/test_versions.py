"""Records of a later version: those that may be left out are, and a session with others is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.replicas import answers
from tests.cluster.test_nats_faults import admin
from tests.support.nats import Nats, running_nats
from tests.support.server import running_server, scripted

pytestmark = pytest.mark.anyio

TWO = scripted({"text": "one"}, {"text": "two"})


async def append(nats: Nats, session: str, kind: str, version: str) -> None:
    """Append a record as a later version would."""
    headers = {"Jumpseat-Kind": kind, "Jumpseat-Epoch": "1", "Jumpseat-Version": version}
    async with admin(nats) as client:
        await client.jetstream().publish(f"jumpseat.log.{session}", b"of the future", headers=headers)


async def test_a_session_with_records_of_a_later_version_is_opened_or_refused_but_never_changed_blindly(
    tmp_path: Path,
) -> None:
    async with running_nats(tmp_path) as nats:
        config = nats.config()
        async with running_server(tmp_path / "one", config=config) as server:
            session = await server.wire.create(TWO)
            await server.wire.prompt(session)
        await append(nats, session, "hologram", "1")
        resume = {"sessionId": session, "provider": TWO}
        async with running_server(tmp_path / "two", config=config) as server:
            await server.wire.call("session.resume", resume)
            assert answers(await server.wire.prompt(session)) == ["two"]
        await append(nats, session, "events", "2")
        async with running_server(tmp_path / "three", config=config) as server:
            for _ in range(2):
                error = await server.wire.error_of("session.resume", resume)
                assert "a later version of jumpseat has stored the session" in error["message"]
            error = await server.wire.error_of("session.delete", {"sessionId": session})
            assert "a later version" in error["message"]
            assert [entry["sessionId"] for entry in (await server.wire.call("session.list", {}))["sessions"]] == [
                session
            ]
