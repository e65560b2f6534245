"""Replicas of one cluster behind a balancer, each a real server that tests kill, pause, drain and restart.

::

    async with running_nats(tmp_path, 3) as nats, balanced_replicas(tmp_path, nats) as replicas:
        async with replicas.connect() as wire:                                   # to the next replica
            await replicas.all[0].kill()
"""

from __future__ import annotations

import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import TaskGroup, TaskStatus

from tests.support.nats import Nats
from tests.support.server import RunningServer, Wire, running_server
from tests.support.tcp_forwarder import Forwarder, forwarder

DRAIN_S: Final = 3.0
START_S: Final = 150.0
"""Without a leader of its streams, JetStream keeps a replica waiting."""
_EXIT_S: Final = DRAIN_S + 20
_NO_LIMIT_S: Final = 86400.0


class Replica:
    """One replica. Each process has a home of its own, so that nothing but JetStream outlives it.

    ``nats`` are its connections to the servers of NATS, which tests cut and pause.
    """

    def __init__(self, name: str, folder: Path, nats: Forwarder, balancer: Forwarder, tasks: TaskGroup) -> None:
        self.name = name
        self.nats = nats
        self.port = 0
        self.paused = False
        self.problems: list[str] = []
        """How processes have ended badly: with a traceback in the log, for example."""
        self._folder = folder
        self._balancer = balancer
        self._tasks = tasks
        self._lives = 0
        self._server: RunningServer | None = None
        self._end = anyio.Event()
        self._ended = anyio.Event()

    @property
    def lives(self) -> int:
        """Return the number of processes so far."""
        return self._lives

    @property
    def running(self) -> bool:
        """Return whether the process runs, or is paused."""
        return self._server is not None

    @property
    def server(self) -> RunningServer:
        """The running process."""
        assert self._server is not None, f"{self.name} does not run"
        return self._server

    def config(self) -> str:
        """Return the ``config.toml`` of the replica."""
        url = f"nats://127.0.0.1:{self.nats.port}"
        return f'[store]\nurl = "{url}"\ncopies = {len(self.nats.targets)}\ndrain_s = {DRAIN_S}\n'

    async def start(self) -> None:
        """Start a process, and let the balancer forward connections to it."""
        assert not self.running
        self._lives += 1
        self._end, self._ended, self.paused = anyio.Event(), anyio.Event(), False
        await self._tasks.start(self._live, self._folder / f"{self.name}-{self._lives}")
        self._balancer.targets.append(self.port)

    async def _live(self, folder: Path, *, task_status: TaskStatus[None]) -> None:
        try:
            async with running_server(
                folder,
                tcp=True,
                args=("--log-level", "info"),
                config=self.config(),
                limit_s=_NO_LIMIT_S,
                start_s=START_S,
            ) as server:
                assert server.port is not None
                self._server, self.port = server, server.port
                task_status.started()
                try:
                    await self._end.wait()
                finally:
                    (folder / "stderr.log").write_text(server.stderr)
        except AssertionError as error:
            if self._server is None:
                raise
            self.problems.append(f"{folder.name}: {error}")
        finally:
            self._server = None
            self._ended.set()

    async def kill(self) -> None:
        """End the process with SIGKILL."""
        await self.server.kill()
        await self._leave()

    async def terminate(self) -> None:
        """End the process with SIGTERM: it drains first. One that does not end is killed, and a problem."""
        # The balancer is told before, as by a readiness probe.
        self._balancer.targets.remove(self.port)
        self.server.signal(signal.SIGTERM)
        self.unpause()
        try:
            await self.server.exit_code(_EXIT_S)
        except AssertionError:
            self.problems.append(f"{self.name}-{self._lives} does not end within {_EXIT_S} s after SIGTERM")
            await self.server.kill()
        await self._leave()

    async def _leave(self) -> None:
        if self.port in self._balancer.targets:
            self._balancer.targets.remove(self.port)
        self._end.set()
        await self._ended.wait()

    def pause(self) -> None:
        """Stop the process until :meth:`unpause`; its connections stay open."""
        self.paused = True
        self.server.signal(signal.SIGSTOP)

    def unpause(self) -> None:
        """Let the process continue."""
        self.paused = False
        self.server.signal(signal.SIGCONT)

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[Wire]:
        """Open a connection to this replica."""
        async with self.server.connect() as wire:
            yield wire


class BalancedReplicas:
    """The replicas of a cluster, and the balancer in front of them."""

    def __init__(self, replicas: list[Replica], balancer: Forwarder) -> None:
        self.all = replicas
        self.balancer = balancer

    def running(self) -> list[Replica]:
        """Return the replicas that run, without the paused ones."""
        return [replica for replica in self.all if replica.running and not replica.paused]


@asynccontextmanager
async def balanced_replicas(folder: Path, nats: Nats, count: int = 3) -> AsyncGenerator[BalancedReplicas]:
    """Start replicas; those that run at the end of the block are ended. Look at the problems of each then."""
    async with anyio.create_task_group() as links, forwarder() as balancer, anyio.create_task_group() as tasks:
        replicas = BalancedReplicas([], balancer)
        for number in range(count):
            link = Forwarder(links, [node.port for node in nats.nodes])
            await link.serve()
            # Each begins with another server of NATS.
            link.targets = link.targets[number:] + link.targets[:number]
            replicas.all.append(Replica(f"r{number}", folder, link, balancer, tasks))
        for replica in replicas.all:
            await replica.start()
        yield replicas
        for replica in replicas.all:
            if replica.running:
                await replica.terminate()
        links.cancel_scope.cancel()
