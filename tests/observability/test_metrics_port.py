"""``--metrics-port`` and ``jumpseat status``: health and metrics of a running server."""

from __future__ import annotations

import json
import os
import socket
from ipaddress import ip_address
from pathlib import Path

import anyio.to_thread
import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from jumpseat.cli.arguments import parse
from jumpseat.observability.health import MOST_REQUESTS
from jumpseat.store.user.running_servers import RunningServers
from tests.support.commands import run_command
from tests.support.server import RunningServer, calls, running_server, scripted

pytestmark = pytest.mark.anyio


def metrics_url(server: RunningServer) -> str:
    """Return the address of health and metrics, which the server has stored before it answers anybody."""
    (found,) = RunningServers(server.home).all()
    return f"http://127.0.0.1:{found.metrics_port}"


async def test_prometheus_reads_what_sessions_have_done(tmp_path: Path) -> None:
    provider = scripted(calls("bash", command="true"), {"text": "done", "usage": {"input": 5}})
    async with running_server(tmp_path, args=("--metrics-port", "0", "--yolo")) as server:
        session = await server.wire.create(provider)
        await server.wire.prompt(session)
        async with httpx2.AsyncClient(base_url=metrics_url(server)) as client:
            answer = await client.get("/metrics")
            health = await client.get("/healthz")
            ready = await client.get("/readyz")

    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }
    model = (("error_type", ""), ("gen_ai_operation_name", "chat"), ("gen_ai_provider_name", "scripted"))
    assert (
        sum(value for key, value in samples.items() if key[0] == "gen_ai_client_operation_duration_seconds_count")
        == 2
    )
    assert all(
        set(model) <= set(key) for key in samples if key[0] == "gen_ai_client_operation_duration_seconds_count"
    )
    assert samples[("github_copilot_tool_call_count_total", ("gen_ai_tool_name", "bash"), ("success", "true"))] == 1
    decided = (("by", "operator"), ("decision", "allowed"), ("kind", "shell"))
    assert samples[("jumpseat_tool_decisions_total", *decided)] == 1
    assert samples[("jumpseat_sessions",)] == 1
    assert (health.status_code, health.text) == (200, "ok\n")
    assert (ready.status_code, ready.text) == (200, "ready\n")


async def test_a_web_page_under_another_name_gets_nothing(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, args=("--metrics-port", "0")) as server,
        httpx2.AsyncClient(base_url=metrics_url(server)) as client,
    ):
        rebound = await client.get("/status", headers={"Host": "evil.example"})
        posted = await client.post("/status")
        missing = await client.get("/other")

    assert [rebound.status_code, posted.status_code, missing.status_code] == [403, 405, 404]


async def test_silent_connections_do_not_keep_out_a_supervisor(tmp_path: Path) -> None:
    async with running_server(tmp_path, args=("--metrics-port", "0")) as server:
        address = ("127.0.0.1", int(metrics_url(server).rpartition(":")[2]))
        silent = [socket.create_connection(address) for _ in range(2 * MOST_REQUESTS)]
        try:
            async with httpx2.AsyncClient(base_url=metrics_url(server)) as client:
                assert (await client.get("/healthz")).text == "ok\n"
        finally:
            for connection in silent:
                connection.close()


def own_address() -> str:
    """Return an address of this machine that others reach, or skip the test."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Nothing is sent: the system only chooses an address.
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address but loopback")
        return probe.getsockname()[0]


async def test_scrapers_read_the_metrics_at_a_private_address(tmp_path: Path) -> None:
    address = own_address()
    if not ip_address(address).is_private:
        pytest.skip("this machine has no private address")
    async with (
        running_server(tmp_path, args=("--metrics-port", "0", "--metrics-host", address)) as server,
        httpx2.AsyncClient(trust_env=False) as client,
    ):
        local = metrics_url(server)
        remote = local.replace("127.0.0.1", address)
        statuses = {
            (url, path): (await client.get(f"{url}{path}")).status_code
            for url in (local, remote)
            for path in ("/healthz", "/metrics", "/status")
        }
        rebound = await client.get(f"{remote}/metrics", headers={"Host": "evil.example"})
    assert [path for path, status in statuses.items() if status != 200] == [(remote, "/status")]
    assert rebound.status_code == 403


async def test_scrapers_present_the_token_at_any_address(tmp_path: Path) -> None:
    address = own_address()
    async with (
        running_server(
            tmp_path,
            args=("--metrics-port", "0", "--metrics-host", "0.0.0.0"),
            env={"JUMPSEAT_METRICS_TOKEN": "token-of-scrapers"},
        ) as server,
        httpx2.AsyncClient(trust_env=False) as client,
    ):
        remote = metrics_url(server).replace("127.0.0.1", address)
        right = {"Authorization": "Bearer token-of-scrapers"}
        for path, headers, status in (
            ("/metrics", {}, 401),
            ("/metrics", {"Authorization": "Bearer token"}, 401),
            ("/metrics", {"Authorization": "Basic token-of-scrapers"}, 401),
            ("/metrics", right, 200),
            ("/metrics", {**right, "Host": "name.of.the.service"}, 200),
            ("/readyz", {}, 200),
            ("/status", right, 404),
        ):
            assert (await client.get(f"{remote}{path}", headers=headers)).status_code == status, (path, headers)
        assert (await client.get(f"{metrics_url(server)}/status")).status_code == 200


@pytest.mark.parametrize(
    ("arguments", "token", "problem"),
    [
        (["--metrics-host", "10.0.0.7"], None, "--metrics-host needs --metrics-port"),
        (["--metrics-port", "1", "--metrics-host", "0.0.0.0"], None, "set JUMPSEAT_METRICS_TOKEN"),
        (["--metrics-port", "1", "--metrics-host", "::"], None, "set JUMPSEAT_METRICS_TOKEN"),
        (["--metrics-port", "1", "--metrics-host", "8.8.8.8"], "", "set JUMPSEAT_METRICS_TOKEN"),
        (["--metrics-port", "1", "--metrics-host", "pod.example"], "x", "expected an IP address"),
    ],
)
def test_metrics_are_for_nobody_by_accident(
    arguments: list[str], token: str | None, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    environ = {"JUMPSEAT_METRICS_TOKEN": token} if token is not None else {}
    with pytest.raises(SystemExit):
        parse(["--headless", *arguments], environ)
    assert problem in capsys.readouterr().err


async def test_status_prints_the_health_of_running_servers_and_forgets_killed_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running_server(tmp_path, args=("--metrics-port", "0")) as server:
        metrics_url(server)
        environ = {"COPILOT_HOME": str(server.home)}
        servers = RunningServers(server.home)
        code = await anyio.to_thread.run_sync(run_command, ["status", "--json"], environ)
        (status,) = json.loads(capsys.readouterr().out)
        port = status["metricsPort"]
        pid = status["pid"]

    assert code == 0
    assert status["ready"] is True
    assert status["connections"] == 1
    assert servers.all() == []
    # The entry of a server that was killed.
    servers.add_this(port)
    assert [found.pid for found in servers.all()] == [os.getpid()]
    assert pid != os.getpid()
    assert run_command(["status"], environ) == 1
    assert "no server with --metrics-port runs" in capsys.readouterr().err
    assert servers.all() == []


async def test_a_taken_port_is_named(tmp_path: Path) -> None:
    async with running_server(tmp_path, args=("--metrics-port", "0")) as first:
        port = metrics_url(first).rpartition(":")[2]
        async with running_server(tmp_path, args=("--metrics-port", port), handshake=False) as second:
            second.expect_exit = 1
            await second.wire.ended.wait()
    assert f"error: cannot listen on --metrics-port {port}: Address already in use" in second.stderr
