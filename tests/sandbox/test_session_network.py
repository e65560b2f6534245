"""Decisions about the hosts of confined commands, and how long they hold."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from jumpseat.mcp.stdio import stdio_streams
from jumpseat.sandbox.proxy import Target
from jumpseat.sandbox.session import Sandboxes, SessionSandbox
from jumpseat.sandbox.session_network import Reach, SessionNetwork
from jumpseat.sandbox.settings import SandboxSettings
from jumpseat_protocol.mcp_servers import McpServerConfig
from tests.sandbox.parts import MECHANISMS

pytestmark = pytest.mark.anyio

HOST = Target("one.example", 443, "https://one.example/")


class Person:
    """Approves every host once; ``asked`` are the commands of the questions."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def forbids(self, url: str) -> bool:
        return False

    async def allows(self, url: str, reach: Reach) -> bool:
        self.asked.append(reach.command)
        return True


async def test_an_approval_once_ends_with_the_command_that_runs() -> None:
    person = Person()
    async with anyio.create_task_group() as tasks:
        network = SessionNetwork(SandboxSettings, tasks, person, cast("Any", None), lambda: os.environ)
        # A process that an ended command has left behind connects while no command runs.
        assert await network.admit(HOST) is None
        first, second = Reach(command="first"), Reach(command="second")
        network.begin(first)
        assert await network.admit(HOST) is None
        network.begin(second)
        assert await network.admit(HOST) is None
        network.end(first)
        network.end(second)
        network.begin(Reach(command="third"))
        assert await network.admit(HOST) is None
    assert person.asked == ["", "first", "third"]


@pytest.mark.skipif("bubblewrap" not in MECHANISMS, reason="needs bubblewrap")
async def test_an_approval_once_ends_with_the_mcp_server_that_runs(tmp_path: Path) -> None:
    person = Person()
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    sandboxes = Sandboxes(SandboxSettings(mode="auto"), tmp_path / "home", environ)
    sandboxes.mechanism, sandboxes.probed = MECHANISMS["bubblewrap"], True
    async with anyio.create_task_group() as tasks:
        network = SessionNetwork(lambda: sandboxes.defaults, tasks, person, cast("Any", None), lambda: environ)
        sandbox = SessionSandbox(sandboxes, lambda: sandboxes.defaults, lambda: [tmp_path], network=network)
        for _ in range(2):
            config = McpServerConfig(command="cat")
            async with stdio_streams(
                config, name="s", cwd=tmp_path, environ=environ, mask=str, close_s=lambda: 1.0, sandbox=sandbox
            ):
                assert await network.admit(HOST) is None
        await sandbox.close()
    assert person.asked == ["cat", "cat"]
