"""The official SDKs for Python and Node, their connections spread over three replicas by a plain TCP balancer."""

from __future__ import annotations

import json
import os
from pathlib import Path

import anyio
import pytest

from tests.cluster.replicas import running_replicas
from tests.support.fake_openai import calls, fake_openai, says
from tests.support.tcp_forwarder import forwarder
from tests.support.toolchains import NEWEST_NPM_SDK, NEWEST_PYPI_SDK, Sdk, require_sdk

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]


def program_of(sdk: Sdk, *arguments: str) -> list[str]:
    """Return the command that runs three clients with an SDK."""
    folder = require_sdk(sdk)
    program = Path(__file__).with_name("three_sdk_clients.py")
    if sdk.registry == "pypi":
        return [str(folder / "bin" / "python"), str(program), *arguments]
    package = folder / "node_modules" / "@github" / "copilot-sdk"
    return ["node", str(program.with_suffix(".mjs")), *arguments, str(package)]


@pytest.mark.parametrize("sdk", [Sdk("pypi", NEWEST_PYPI_SDK), Sdk("npm", NEWEST_NPM_SDK)], ids=str)
async def test_three_clients_share_a_session_through_a_balancer_with_three_nodes_of_nats(
    sdk: Sdk, tmp_path: Path
) -> None:
    script = {"the weather?": [calls("weather"), says("it is ", "sunny")], "and now?": [says("still sunny")]}
    async with (
        fake_openai(script) as model,
        running_replicas(tmp_path, 3, nodes=3, limit_s=120) as replicas,
        forwarder(*(server.port for server in replicas.servers if server.port is not None)) as balancer,
    ):
        command = program_of(sdk, f"localhost:{balancer.port}", model.base_url)
        environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
        with anyio.fail_after(90):
            done = await anyio.run_process(command, check=False, env=environment)
        assert done.returncode == 0, done.stderr.decode()
        report = json.loads(done.stdout)
        assert len(balancer.used) == 3
        assert report["answers"] == ["it is sunny", "still sunny"]
        assert report["listed"]
        first, third = report["seen"]["first"], report["seen"]["third"]
        assert first == third
        assert first.count("session.idle") == 2
        assert first.count("tool.execution_complete") == 1
