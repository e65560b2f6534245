"""Replicas of two versions: what they store, and whether they relay clients to each other."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from jumpseat_protocol.version import __version__
from tests.cluster.replicas import answers
from tests.cluster.test_nats_faults import admin
from tests.cluster.test_operating import command
from tests.support.limits import WAIT_S
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


def later_build(folder: Path, oldest: int, newest: int) -> dict[str, str]:
    """Return the environment of a server of version 99.0, which speaks these versions of the relay protocol."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        "from jumpseat_protocol import version\n"
        "version.__version__ = '99.0'\n"
        "from jumpseat.cluster.replicas import handshake\n"
        f"handshake.SPOKEN = handshake.Versions({oldest}, {newest})\n"
    )
    return {"PYTHONPATH": str(folder)}


async def test_a_session_of_a_replica_with_another_relay_protocol_is_refused_until_that_replica_has_drained(
    tmp_path: Path,
) -> None:
    later = later_build(tmp_path / "build", 3, 4)
    async with (
        running_nats(tmp_path) as nats,
        running_server(tmp_path / "later", tcp=True, config=nats.config(), env=later) as there,
        running_server(tmp_path / "here", tcp=True, config=nats.config()) as here,
        here.connect() as wire,
    ):
        async with there.connect() as other:
            session = await other.create(TWO)
            assert answers(await other.prompt(session)) == ["one"]
            resume = {"sessionId": session, "provider": TWO}
            for method, params in (("session.resume", resume), ("session.getMessages", {"sessionId": session})):
                error = await wire.error_of(method, params)
                assert error["data"]["code"] == "replica_incompatible"
                assert (error["data"]["version"], error["data"]["ownVersion"]) == ("99.0", __version__)
                assert "jumpseat 99.0 with relay protocol 3 to 4, because this one" in error["message"]
            # What does not need the other replica goes on.
            assert [one["sessionId"] for one in (await wire.call("session.list", {}))["sessions"]] == [session]
            mine = await wire.create(TWO)
            assert (await other.error_of("session.resume", {"sessionId": mine}))["data"]["version"] == __version__
            status = json.loads(await command(here.home, "cluster", "status", "--json"))
            ids = {replica["version"]: replica["id"] for replica in status["replicas"]}
            told = {replica["id"]: (replica["relay"], replica["incompatible"]) for replica in status["replicas"]}
            assert told == {ids[__version__]: ([1, 2], [ids["99.0"]]), ids["99.0"]: ([3, 4], [ids[__version__]])}
            printed = await command(here.home, "cluster", "status")
            assert f"{ids[__version__]} cannot relay to {ids['99.0']}" in printed
        await there.end()
        await wire.call("session.resume", resume)
        assert answers(await wire.prompt(session)) == ["two"]


async def test_a_session_that_went_to_an_incompatible_replica_comes_back_to_its_client_when_that_one_drains(
    tmp_path: Path,
) -> None:
    later = later_build(tmp_path / "build", 3, 4)
    async with (
        running_nats(tmp_path) as nats,
        running_server(tmp_path / "later", tcp=True, config=nats.config(), env=later) as there,
        running_server(tmp_path / "here", tcp=True, config=nats.config()) as here,
        running_server(tmp_path / "owner", tcp=True, config=nats.config()) as owner,
        here.connect() as wire,
    ):
        async with owner.connect() as first:
            session = await first.create(TWO)
            resume = {"sessionId": session, "provider": TWO}
            await wire.call("session.resume", resume)
            assert answers(await wire.prompt(session)) == ["one"]
            # The replica of the client cannot take the session over, and the later one is asked to.
            here.signal(signal.SIGSTOP)
            await owner.kill()
        async with there.connect() as other:
            await other.call("session.resume", resume)
            here.signal(signal.SIGCONT)
            code = "outcome_unknown"
            while code in ("outcome_unknown", "store_unavailable"):
                # The replica does not know yet that the owner is gone, or is cut off after its pause.
                error = await wire.error_of("session.send", {"sessionId": session, "prompt": "go"})
                code = error["data"]["code"]
            assert code == "replica_incompatible"
        since = len(wire.messages)
        await there.end()
        await wire.event("session.resume", session=session, since=since)
        assert answers(await wire.prompt(session)) == ["two"]


async def test_replicas_with_a_relay_protocol_in_common_relay_to_each_other(tmp_path: Path) -> None:
    later = later_build(tmp_path / "build", 1, 3)
    async with (
        running_nats(tmp_path) as nats,
        running_server(tmp_path / "later", tcp=True, config=nats.config(), env=later) as there,
        running_server(tmp_path / "here", tcp=True, config=nats.config()) as here,
        there.connect() as other,
        here.connect() as wire,
    ):
        session, mine = await other.create(TWO), await wire.create(TWO)
        await wire.call("session.resume", {"sessionId": session, "provider": TWO})
        assert answers(await wire.prompt(session)) == ["one"]
        await other.call("session.resume", {"sessionId": mine, "provider": TWO})
        assert answers(await other.prompt(mine)) == ["one"]


async def test_a_replica_ignores_what_later_ones_tell_of_a_client_and_refuses_those_without_a_version(
    tmp_path: Path,
) -> None:
    async with (
        running_nats(tmp_path) as nats,
        running_server(tmp_path / "one", config=nats.config()),
        admin(nats) as client,
    ):
        (replica,) = await (await client.jetstream().key_value("jumpseat-replicas")).keys()

        async def say_hello(**members: object) -> bytes:
            hello = json.dumps({"tunnel": "abc", "replica": "another", **members}).encode()
            return (await client.request(f"jumpseat.to.{replica}.open", hello, timeout=WAIT_S)).data

        assert await say_hello(relay=[1, 9], hologram={"of": "the future"}) == b"ok"
        for refused in ({}, {"relay": [3, 9]}, {"relay": [1, 9], "tunnel": 5}):
            assert json.loads(await say_hello(**refused)) == {"relay": [1, 2], "version": __version__}
        # The end of the tunnel, for which the replica would wait.
        await client.publish(f"jumpseat.to.{replica}.tunnel.abc", b"R" + bytes(16))
