"""The parts of a cluster that can be killed, paused and cut off: servers of NATS, replicas, and a proxy between."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import ByteStream, SocketStream, TaskGroup

from tests.support.nats import Nats

READY_S: Final = 60.0


class Cut:
    """A proxy between one replica and the servers of NATS, which can be cut."""

    def __init__(self, targets: list[int]) -> None:
        self._targets = targets
        self.ports: list[int] = []
        self._is_cut = False
        self._scopes: set[anyio.CancelScope] = set()

    async def start(self, tasks: TaskGroup) -> None:
        for target in self._targets:
            listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
            self.ports.append(listener.extra(anyio.abc.SocketAttribute.local_port))

            async def serve(stream: SocketStream, target: int = target) -> None:
                await self._serve(stream, target)

            tasks.start_soon(listener.serve, serve)

    def cut(self) -> None:
        """End all connections, and accept none."""
        self._is_cut = True
        for scope in list(self._scopes):
            scope.cancel()

    def mend(self) -> None:
        self._is_cut = False

    async def _serve(self, stream: SocketStream, target: int) -> None:
        async with stream:
            if self._is_cut:
                return
            with suppress(OSError):
                other = await anyio.connect_tcp("127.0.0.1", target)
                async with other, anyio.create_task_group() as tasks:
                    self._scopes.add(tasks.cancel_scope)
                    try:
                        tasks.start_soon(_pass, stream, other, tasks.cancel_scope)
                        await _pass(other, stream, tasks.cancel_scope)
                    finally:
                        self._scopes.discard(tasks.cancel_scope)


async def _pass(source: ByteStream, target: ByteStream, scope: anyio.CancelScope) -> None:
    with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
        while True:
            await target.send(await source.receive())
    scope.cancel()


class Replica:
    """A server process with a home of its own, on a fixed port."""

    def __init__(self, folder: Path, number: int, port: int, cut: Cut) -> None:
        self.number = number
        self.port = port
        self.cut = cut
        self._home = folder / f"replica{number}"
        self._log = folder / f"replica{number}.log"
        self._process: subprocess.Popen[bytes] | None = None
        self.paused = False
        self._home.mkdir()
        urls = ",".join(f"nats://127.0.0.1:{port}" for port in cut.ports)
        (self._home / "config.toml").write_text(f'[store]\nurl = "{urls}"\ncopies = 3\n')

    def start(self) -> None:
        command = [str(Path(sys.executable).with_name("jumpseat")), "--headless", "--port", str(self.port)]
        environ = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        environ |= {"HOME": str(self._home), "COPILOT_HOME": str(self._home)}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--no-token", "--log-level", "info"], stdout=log, stderr=log, env=environ, cwd=self._home
            )

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self.paused = False

    def terminate(self) -> None:
        if self._process is not None:
            self._process.terminate()

    def pause(self) -> None:
        if self._process is not None and not self.paused:
            self._process.send_signal(signal.SIGSTOP)
            self.paused = True

    def wake(self) -> None:
        if self._process is not None and self.paused:
            self._process.send_signal(signal.SIGCONT)
            self.paused = False

    async def wait_until_ready(self) -> None:
        with anyio.fail_after(READY_S):
            while True:
                with suppress(OSError):
                    await (await anyio.connect_tcp("127.0.0.1", self.port)).aclose()
                    return
                if not self.alive:
                    self.start()
                await anyio.sleep(0.1)


class Machines:
    """All parts of the cluster."""

    def __init__(self, nats: Nats, replicas: list[Replica]) -> None:
        self.nats = nats
        self.replicas = replicas

    def up(self) -> Iterator[Replica]:
        """Yield the replicas that are reachable."""
        return (replica for replica in self.replicas if replica.alive and not replica.paused)
