"""The official Python SDK, its connections spread over three replicas by a plain TCP balancer."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest

from tests.cluster.replicas import running_replicas
from tests.support.fake_openai import calls, fake_openai, says
from tests.support.tcp_forwarder import forwarder
from tests.support.toolchains import NEWEST_PYPI_SDK, Sdk, require_sdk

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]


async def test_three_clients_share_a_session_through_a_balancer_with_three_nodes_of_nats(tmp_path: Path) -> None:
    sdk = require_sdk(Sdk("pypi", NEWEST_PYPI_SDK))
    program = Path(__file__).with_name("three_sdk_clients.py")
    script = {"the weather?": [calls("weather"), says("it is ", "sunny")], "and now?": [says("still sunny")]}
    async with (
        fake_openai(script) as model,
        running_replicas(tmp_path, 3, nodes=3, limit_s=120) as replicas,
        forwarder(*(server.port for server in replicas.servers if server.port is not None)) as balancer,
    ):
        command = [str(sdk / "bin" / "python"), str(program), f"localhost:{balancer.port}", model.base_url]
        with anyio.fail_after(90):
            done = await anyio.run_process(
                command, check=False, env={"HOME": str(tmp_path), "PATH": "/bin:/usr/bin"}
            )
        assert done.returncode == 0, done.stderr.decode()
        report = json.loads(done.stdout)
        assert len(balancer.used) == 3
        assert report["answers"] == ["it is sunny", "still sunny"]
        assert report["listed"]
        first, third = report["seen"]["first"], report["seen"]["third"]
        assert first == third
        assert first.count("session.idle") == 2
        assert first.count("tool.execution_complete") == 1
