"""TCP between clients and servers on loopback: a balancer without stickiness; tests cut and pause connections.

::

    async with forwarder(server_1.port, server_2.port) as balancer:
        stream = await anyio.connect_tcp("127.0.0.1", balancer.port)
        balancer.cut()
"""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import anyio
from anyio.abc import SocketAttribute, SocketStream, TaskGroup, TaskStatus

_FAILURES: Final = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError)


@dataclass(eq=False)
class Forwarded:
    """One connection, and the port of the server behind it."""

    target: int
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    flows: anyio.Event = field(default_factory=anyio.Event)

    def cut(self) -> None:
        """Break the connection on both sides, with a reset instead of an orderly end."""
        self.scope.cancel()

    def pause(self) -> None:
        """Hold all bytes back until :meth:`unpause`; both sides stay connected."""
        if self.flows.is_set():
            self.flows = anyio.Event()

    def unpause(self) -> None:
        """Let bytes flow again, first those that were held back."""
        self.flows.set()


class Forwarder:
    """Forwards each connection to the next of ``targets``, the ports of servers, or the first that accepts it."""

    def __init__(self, tasks: TaskGroup, targets: list[int]) -> None:
        self.targets = targets
        self.port = 0
        self.connections: list[Forwarded] = []
        self.used: set[int] = set()
        """The targets that connections went to."""
        self.accepts = True
        """Whether new connections are forwarded; otherwise they are reset."""
        self._tasks = tasks
        self._next = 0

    async def serve(self) -> None:
        """Listen on a free port, and forward until cancelled; returns when connections can come."""
        self.port = await self._tasks.start(listen, self._forward)

    def cut(self, target: int | None = None) -> int:
        """Break all connections, or those to one server; returns their number."""
        cut = [connection for connection in self.connections if target in (None, connection.target)]
        for connection in cut:
            connection.cut()
        return len(cut)

    async def _forward(self, client: SocketStream) -> None:
        async with client:
            server = await self._connect() if self.accepts else None
            if server is None:
                _reset(client)
                return
            stream, target = server
            connection = Forwarded(target)
            connection.unpause()
            self.connections.append(connection)
            self.used.add(target)
            try:
                async with stream:
                    with connection.scope:
                        async with anyio.create_task_group() as tasks:
                            tasks.start_soon(self._pass_on, client, stream, connection)
                            tasks.start_soon(self._pass_on, stream, client, connection)
                    if connection.scope.cancelled_caught:
                        _reset(client)
                        _reset(stream)
            finally:
                self.connections.remove(connection)

    async def _connect(self) -> tuple[SocketStream, int] | None:
        for _ in range(len(self.targets)):
            target = self.targets[self._next % len(self.targets)]
            self._next += 1
            try:
                with anyio.move_on_after(2):
                    return await anyio.connect_tcp("127.0.0.1", target), target
            except OSError:
                continue
        return None

    async def _pass_on(self, source: SocketStream, sink: SocketStream, connection: Forwarded) -> None:
        try:
            while True:
                data = await source.receive(1 << 16)
                await connection.flows.wait()
                await sink.send(data)
        except anyio.EndOfStream:
            # The other direction may still have something to say.
            try:
                await sink.send_eof()
            except _FAILURES:
                connection.cut()
        except _FAILURES:
            connection.cut()


async def listen(
    handle: Callable[[SocketStream], Awaitable[None]], *, task_status: TaskStatus[int] = anyio.TASK_STATUS_IGNORED
) -> None:
    """Give each connection to a free port of loopback to ``handle``; the status of the task is the port."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1", backlog=1024) as listener:
        task_status.started(listener.extra(SocketAttribute.local_port))
        await listener.serve(handle)


def _reset(stream: SocketStream) -> None:
    """Make the end of a connection a reset."""
    raw = stream.extra(SocketAttribute.raw_socket)
    if raw.fileno() >= 0:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


@asynccontextmanager
async def forwarder(*targets: int) -> AsyncGenerator[Forwarder]:
    """Forward connections to ``targets`` until the end of the block, when all of them are broken."""
    async with anyio.create_task_group() as tasks:
        forwarding = Forwarder(tasks, list(targets))
        await forwarding.serve()
        yield forwarding
        tasks.cancel_scope.cancel()
