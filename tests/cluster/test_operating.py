"""The people who run a cluster see its replicas, move sessions, and are told which host a session needs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import anyio
import anyio.lowlevel
import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.cluster.replicas import answers, running_replicas
from tests.observability.test_metrics_port import metrics_url
from tests.support.limits import WAIT_S
from tests.support.nats import running_nats
from tests.support.server import RunningServer, calls, running_server, scripted

pytestmark = pytest.mark.anyio

FIVE = scripted(*({"text": f"answer {number}"} for number in range(5)))


async def command(home: Path, *argv: str) -> str:
    """Run a command that must succeed, and return what it has printed."""
    program = str(Path(sys.executable).with_name("jumpseat"))
    with anyio.fail_after(60):
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


def files_of(home: Path, session: str) -> dict[str, bytes]:
    """Return the files of a session by name, without the locks of processes."""
    folder = home / "session-state" / session
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".lock"
    }


async def test_a_copy_to_the_cluster_and_back_is_the_same_byte_for_byte(tmp_path: Path) -> None:
    script = scripted(
        calls("bash", command="seq 1 100000"),
        calls("sql", "call-2", query="INSERT INTO todos (id, title) VALUES ('1', 'large')", description="Note it"),
        {"text": "one"},
        {"text": "a summary"},
    )
    more = scripted(calls("view", path="/nowhere"), {"text": "two"})
    async with running_nats(tmp_path, 3) as nats:
        async with running_server(tmp_path / "files", args=("--yolo",)) as server:
            session = await server.wire.create(script, workingDirectory=str(tmp_path))
            await server.wire.prompt(session, "make all kinds of files")
            about = {"sessionId": session}
            await server.wire.call("session.history.compact", about)
            await server.wire.call("session.plan.update", about | {"content": "# the plan\n" * 20_000})
            large = about | {"path": "é/large.txt", "content": "0123456789é\n" * 300_000}
            await server.wire.call("session.workspaces.createFile", large)
            await server.wire.call("session.workspaces.createFile", about | {"path": "empty", "content": ""})
            await server.wire.call("session.detach", about)
            await server.wait_until_logs_are_closed()
            home = server.home
        before = files_of(home, session)
        assert {name.partition("/")[0] for name in before} >= {
            "checkpoints",
            "files",
            "temp",
            "session.db",
            "plan.md",
        }
        assert max(map(len, before.values())) > 3 << 20
        (home / "config.toml").write_text(nats.config(host="here"))
        await command(home, "store", "copy", "--to", "cluster")
        homes = [tmp_path / "back", tmp_path / "changed"]
        for back in homes:
            back.mkdir()
            (back / "config.toml").write_text(nats.config(host="here"))
        await command(homes[0], "store", "copy", "--to", "files")
        assert files_of(homes[0], session) == before == files_of(home, session)
        # A replica that has the session open leaves most of it alone.
        async with running_server(tmp_path / "replica", config=nats.config(host="here")) as server:
            await server.wire.call("session.resume", about | {"provider": more})
            await server.wire.prompt(session, "change something")
            await server.wire.call("session.workspaces.removePath", about | {"path": "empty"})
            await server.wire.call("session.plan.update", about | {"content": "# small"})
            await server.wire.call("session.detach", about)
        await command(homes[1], "store", "copy", "--to", "files")
        after = files_of(homes[1], session)
        changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
        assert {"events.jsonl", "plan.md", "files/empty"} <= changed
        assert not changed & {
            name for name in before if name.startswith(("checkpoints/", "temp/", "files/é", "session.db"))
        }
        assert after["events.jsonl"].startswith(before["events.jsonl"])
        assert after["plan.md"] == b"# small"


async def test_sessions_that_nobody_changes_are_removed_after_their_retention(tmp_path: Path) -> None:
    # Between two and three seconds.
    async with running_replicas(tmp_path, 2, retention_days=3e-5) as replicas:
        kept, client = [await replicas.connect(number) for number in range(2)]
        watching = await kept.create(FIVE)
        await kept.prompt(watching)
        session = await client.create(FIVE)
        await client.prompt(session)
        large = {"sessionId": session, "path": "large.txt", "content": "x" * 200_000}
        await client.call("session.workspaces.createFile", large)
        status = json.loads(await command(replicas.servers[0].home, "cluster", "status", "--json"))
        assert status["sessions"] == 2
        await client.call("session.detach", {"sessionId": session})
        with anyio.fail_after(WAIT_S):
            while len((await kept.call("session.list", {}))["sessions"]) > 1:
                await anyio.lowlevel.checkpoint()
        # The open one is as old.
        assert [entry["sessionId"] for entry in (await client.call("session.list", {}))["sessions"]] == [watching]
        assert "not found" in (await client.error_of("session.resume", {"sessionId": session}))["message"].lower()
        assert answers(await kept.prompt(watching)) == ["answer 1"]
        objects = await replicas.nats.nodes[0].monitor("jsz?accounts=1&streams=1")
        streams = {one["name"]: one["state"] for one in objects["account_details"][0]["stream_detail"]}
        assert streams["OBJ_jumpseat-files"]["bytes"] < 100_000


async def test_each_replica_measures_what_it_does_for_the_cluster(tmp_path: Path) -> None:
    async with running_replicas(tmp_path, 2, args=("--metrics-port", "0")) as replicas:
        owner, other = [await replicas.connect(number) for number in range(2)]
        session = await owner.create(FIVE)
        await owner.prompt(session)
        await other.call("session.resume", {"sessionId": session, "provider": FIVE})
        await other.prompt(session)
        first, second = [await gauges_of(server) for server in replicas.servers]
        assert (first["owned"], first["takeovers"], first["lost"]) == (1, 0, 0)
        assert first["appends"] > 2
        assert 0 < first["append_median_seconds"] <= first["append_p99_seconds"] < 5
        assert second["owned"] == second["appends"] == 0
        assert second["relayed"] >= 2
        await replicas.servers[0].kill()
        await other.event("session.warning", session=session, warningType="taken_over")
        after = await gauges_of(replicas.servers[1])
        assert (after["owned"], after["takeovers"], after["lost"]) == (1, 1, 0)


async def gauges_of(server: RunningServer) -> dict[str, float]:
    """Return the numbers of a replica that begin with ``jumpseat_cluster_``."""
    async with httpx2.AsyncClient(base_url=metrics_url(server)) as client:
        text = (await client.get("/metrics")).text
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    prefix = "jumpseat_cluster_"
    return {one.name.removeprefix(prefix): one.value for one in samples if one.name.startswith(prefix)}


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
