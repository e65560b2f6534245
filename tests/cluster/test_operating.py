"""The people who run a cluster see its replicas, move sessions, and are told which host a session needs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import anyio
import pytest

from tests.cluster.replicas import answers, running_replicas
from tests.support.nats import running_nats
from tests.support.server import running_server, scripted

pytestmark = pytest.mark.anyio

FIVE = scripted(*({"text": f"answer {number}"} for number in range(5)))


async def command(home: Path, *argv: str) -> str:
    """Run a command that must succeed, and return what it has printed."""
    program = str(Path(sys.executable).with_name("jumpseat"))
    with anyio.fail_after(40):
        done = await anyio.run_process(
            [program, *argv], env={"COPILOT_HOME": str(home), "PATH": "/bin"}, check=False
        )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.decode()


async def test_the_status_lists_the_replicas_and_what_is_stored(tmp_path: Path) -> None:
    async with running_replicas(tmp_path, 2, hosts=["alpha", "beta"]) as replicas:
        client = await replicas.connect(0)
        await client.prompt(await client.create(FIVE))
        home = replicas.servers[0].home
        await client.check_alive()
        status = json.loads(await command(home, "cluster", "status", "--json"))
        assert [replica["host"] for replica in status["replicas"]] == ["alpha", "beta"]
        assert (status["sessions"], status["open"]) == (1, 1)
        assert {store["name"] for store in status["stores"]} >= {"jumpseat-log", "KV_jumpseat-owners"}
        assert "alpha" in await command(home, "cluster", "status")


async def test_sessions_are_copied_from_files_to_the_cluster_and_back(tmp_path: Path) -> None:
    async with running_nats(tmp_path) as nats:
        async with running_server(tmp_path / "files") as server:
            session = await server.wire.create(FIVE)
            await server.wire.prompt(session, "in files")
            await server.wire.call("session.plan.update", {"sessionId": session, "content": "the plan"})
            path = {"sessionId": session, "path": "notes/one.txt", "content": "a note"}
            await server.wire.call("session.workspaces.createFile", path)
            log = server.log_of(session)
        before = log.read_bytes()
        (tmp_path / "files" / "home" / "config.toml").write_text(nats.config())
        printed = await command(tmp_path / "files" / "home", "store", "copy", "--to", "cluster")
        assert f"{session}: copied" in printed
        assert "exists" in await command(tmp_path / "files" / "home", "store", "copy", "--to", "cluster")
        async with running_server(tmp_path / "replica", config=nats.config()) as server:
            await server.wire.call("session.resume", {"sessionId": session, "provider": FIVE})
            assert (await server.wire.call("session.plan.read", {"sessionId": session}))["content"] == "the plan"
            name = {"sessionId": session, "path": "notes/one.txt"}
            assert (await server.wire.call("session.workspaces.readFile", name))["content"] == "a note"
            assert answers(await server.wire.prompt(session)) == ["answer 1"]
        back = tmp_path / "back"
        back.mkdir()
        (back / "config.toml").write_text(nats.config())
        assert f"{session}: copied" in await command(back, "store", "copy", "--to", "files")
        copied = back / "session-state" / session
        assert (copied / "events.jsonl").read_bytes().startswith(before)
        assert (copied / "plan.md").read_text() == "the plan"
        assert (copied / "files" / "notes" / "one.txt").read_text() == "a note"


async def test_a_session_in_a_local_folder_is_opened_on_its_host_or_names_it(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    hosts = ["alpha", "beta"]
    async with running_replicas(tmp_path, 2, hosts=hosts, shared=[str(shared)]) as replicas:
        alpha, beta = await replicas.connect(0), await replicas.connect(1)
        local = await alpha.create(FIVE, workingDirectory=str(tmp_path))
        moving = await alpha.create(FIVE, workingDirectory=str(shared))
        for session in (local, moving):
            await alpha.prompt(session)
            await alpha.call("session.detach", {"sessionId": session})
        # Its host has a replica, to which the request is relayed.
        await beta.call("session.resume", {"sessionId": local, "provider": FIVE})
        assert answers(await beta.prompt(local)) == ["answer 1"]
        await beta.call("session.detach", {"sessionId": local})
        await alpha.hang_up()
        await replicas.servers[0].end()
        error = await beta.error_of("session.resume", {"sessionId": local, "provider": FIVE})
        assert error["data"] == {"code": "session_elsewhere", "sessionId": local, "host": "alpha"}
        await beta.call("session.resume", {"sessionId": moving, "provider": FIVE})
        assert answers(await beta.prompt(moving)) == ["answer 1"]
