"""A plain TCP load balancer: each connection goes to the next port, and nothing is sticky."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count

import anyio
from anyio.abc import ByteStream, SocketAttribute, SocketStream


class Balancer:
    """Passes connections on to ``ports``, which may change while it runs."""

    def __init__(self, ports: Sequence[int]) -> None:
        self.ports = list(ports)
        self.port = 0
        self.connections: list[int] = []
        """The ports that connections went to, in order."""
        self._next = count()

    async def serve(self, stream: SocketStream) -> None:
        """Pass one connection on; ports that nobody listens on are skipped."""
        async with stream:
            for _ in self.ports:
                port = self.ports[next(self._next) % len(self.ports)]
                with suppress(OSError):
                    other = await anyio.connect_tcp("127.0.0.1", port)
                    break
            else:
                return
            self.connections.append(port)
            async with other, anyio.create_task_group() as tasks:
                tasks.start_soon(_pass, stream, other, tasks.cancel_scope)
                await _pass(other, stream, tasks.cancel_scope)


async def _pass(source: ByteStream, target: ByteStream, scope: anyio.CancelScope) -> None:
    with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
        while True:
            await target.send(await source.receive())
    scope.cancel()


@asynccontextmanager
async def running_balancer(ports: Sequence[int]) -> AsyncGenerator[Balancer]:
    """Balance connections between ports on loopback."""
    balancer = Balancer(ports)
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    balancer.port = listener.extra(SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, balancer.serve)
        yield balancer
        tasks.cancel_scope.cancel()
