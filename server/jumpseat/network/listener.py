"""Accept TCP connections, and limit those that have not yet proved to be clients.

A connection is pending until its first valid request, for which it has :data:`GREETING_S`. If too many are pending,
the oldest is closed: clients send their first request at once, so a flood of silent connections does not keep them
out. The limits depend on the number of file handles, of which half are left to sessions.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
import sys
from collections.abc import Callable, Sequence
from typing import Final, Protocol, cast

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup
from msgspec import Struct

from jumpseat.network.peer_user import Owner, endpoint, owner_of_peer
from jumpseat.system.accept_loop import accept

log = logging.getLogger(__name__)

GREETING_S: Final = 10.0
"""The time from the start of a connection to its first valid request, in seconds."""

# The kernel's queue of connections that are not accepted yet.
BACKLOG: Final = 100
PAUSE_S: Final = 0.5
# The free ports that are tried until one is free for both addresses of loopback.
_ATTEMPTS: Final = 20
# The limits where the number of file handles is very large or unknown.
MOST_PENDING: Final = 64
MOST_CONNECTIONS: Final = 10_000


class Newcomer(Protocol):
    """A connection that has been accepted."""

    @property
    def wire(self) -> asyncio.Protocol: ...

    @property
    def admitted(self) -> bool:
        """True once the first valid request has arrived."""
        ...

    async def wait_until_settled(self) -> None:
        """Wait for the first valid request, or for the end of the connection."""
        ...

    def abort(self) -> None:
        """End the connection at once, also if it has no transport yet."""
        ...


class UnknownNewcomer(asyncio.Protocol):
    """A connection whose protocol is not known yet; see :class:`Newcomer`. What arrives decides on the client."""

    def __init__(self) -> None:
        self._client: Newcomer | None = None
        self._transport: asyncio.Transport | None = None
        self._begun = anyio.Event()

    @property
    def wire(self) -> asyncio.Protocol:
        return self

    @property
    def admitted(self) -> bool:
        return self._client is not None and self._client.admitted

    async def wait_until_settled(self) -> None:
        await self._begun.wait()
        if self._client is not None:
            await self._client.wait_until_settled()

    def abort(self) -> None:
        if self._client is not None:
            self._client.abort()
        elif self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)


class Limits(Struct, frozen=True):
    """The limits of pending connections, of all connections, and of the time until the first valid request."""

    pending: int = MOST_PENDING
    connections: int = MOST_CONNECTIONS
    greeting_s: float = GREETING_S


def limits_of_process() -> Limits:
    """Return limits that leave half of the file handles of this process to sessions."""
    if sys.platform == "win32":
        return Limits()
    import resource

    handles, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if handles == resource.RLIM_INFINITY:
        return Limits()
    return Limits(
        pending=min(max(handles // 8, 2), MOST_PENDING), connections=min(max(handles // 2, 4), MOST_CONNECTIONS)
    )


class Listener:
    """Accepts connections of listening sockets, and makes each one a client of the server.

    ``connect`` creates a connection for a peer, named by its address. ``count`` returns the number of open
    connections. With ``same_user``, only processes of the same user of this machine are accepted.
    """

    def __init__(
        self,
        connect: Callable[[str], Newcomer],
        count: Callable[[], int],
        *,
        limits: Limits,
        tls: ssl.SSLContext | None = None,
        same_user: bool = False,
    ) -> None:
        self._connect = connect
        self._count = count
        self._limits = limits
        self._tls = tls
        self._same_user = same_user
        # By the order of their arrival.
        self._pending: dict[anyio.CancelScope, None] = {}
        # Separate threads, because those of tools may all be busy.
        self._threads = anyio.CapacityLimiter(2)

    async def run(self, sockets: Sequence[socket.socket]) -> None:
        """Accept connections until cancelled; pending connections are closed then."""
        try:
            async with anyio.create_task_group() as tasks:
                for listening in sockets:
                    tasks.start_soon(self._accept, listening, tasks)
        finally:
            for listening in sockets:
                listening.close()

    async def _accept(self, listening: socket.socket, tasks: TaskGroup) -> None:
        while True:
            try:
                accepted = await accept(listening)
            except OSError as error:
                # Otherwise, the peer has disconnected before its connection was accepted.
                if error.errno != errno.ECONNABORTED:
                    log.error("cannot accept a connection: %s", error.strerror)
                    self._drop_oldest()
                    await anyio.sleep(PAUSE_S)
                continue
            if self._count() >= self._limits.connections:
                log.warning("refused a connection: %d are open", self._count())
                accepted.close()
                continue
            if len(self._pending) >= self._limits.pending:
                self._drop_oldest()
            tasks.start_soon(self._greet, accepted)

    def _drop_oldest(self) -> None:
        oldest = next(iter(self._pending), None)
        if oldest is not None:
            del self._pending[oldest]
            oldest.cancel()

    async def _greet(self, accepted: socket.socket) -> None:
        """Connect an accepted socket to the server, and close it unless a client is at the other end."""
        connection: Newcomer | None = None
        with anyio.CancelScope(deadline=anyio.current_time() + self._limits.greeting_s) as scope:
            self._pending[scope] = None
            try:
                peer = accepted.getpeername()
                if self._same_user and not await self._is_own(accepted):
                    return
                host = f"[{peer[0]}]" if ":" in peer[0] else peer[0]
                connection = self._connect(f"{host}:{peer[1]}")
                await asyncio.get_running_loop().connect_accepted_socket(
                    lambda: connection.wire,
                    accepted,
                    ssl=self._tls,
                    ssl_handshake_timeout=None if self._tls is None else self._limits.greeting_s,
                )
                await connection.wait_until_settled()
            except OSError as error:
                # Failures of TLS included.
                log.info("a connection failed before its first request: %s", error)
            finally:
                self._pending.pop(scope, None)
                # The connection may have been admitted at the moment the scope was cancelled.
                if connection is None or not connection.admitted:
                    if connection is not None:
                        connection.abort()
                    # Does nothing if the connection's transport has closed the socket.
                    accepted.close()
        if scope.cancelled_caught:
            log.info("closed a connection without a valid request")

    async def _is_own(self, accepted: socket.socket) -> bool:
        try:
            peer, local = endpoint(accepted.getpeername()), endpoint(accepted.getsockname())
        except OSError:
            # The peer has disconnected already.
            return False
        owner = await anyio.to_thread.run_sync(owner_of_peer, peer, local, limiter=self._threads)
        if owner is not Owner.THIS_USER:
            log.warning(
                "refused a connection of %s: without a connection token, only the server's user is served",
                "another user" if owner is Owner.ANOTHER else "an unknown user",
            )
        return owner is Owner.THIS_USER


async def open_sockets(host: str | None, port: int) -> list[socket.socket]:
    """Listen on ``port`` of a host; ``None`` is loopback, over IPv4 and, where available, IPv6.

    Port 0 is any free port, the same for all addresses.

    Raises:
        OSError: the host is unknown, or the port is in use.
    """
    if host is None or host == "localhost":
        return _listen_on_loopback(port)
    addresses = await asyncio.get_running_loop().getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    sockets: list[socket.socket] = []
    try:
        for family, address in dict.fromkeys((family, address) for family, _, _, _, address in addresses):
            sockets.append(_listen(family, (address[0], port, *address[2:])))
            port = port or sockets[0].getsockname()[1]
    except BaseException:
        for opened in sockets:
            opened.close()
        raise
    return sockets


def _listen_on_loopback(port: int) -> list[socket.socket]:
    """Listen on both addresses, because clients resolve ``localhost`` to either one.

    Another program that has the port on one of them would get the tokens of these clients.
    """
    attempts = _ATTEMPTS if port == 0 else 1
    while True:
        first = _listen(socket.AF_INET, ("127.0.0.1", port))
        if not socket.has_ipv6:
            return [first]
        try:
            return [first, _listen(socket.AF_INET6, ("::1", first.getsockname()[1]))]
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                log.info("IPv6 loopback is not available")
                return [first]
            first.close()
            attempts -= 1
            if not attempts:
                raise


def _listen(family: socket.AddressFamily, address: tuple[str | int, ...]) -> socket.socket:
    # With the protocol, asyncio turns Nagle's algorithm off: small messages would wait for those before them.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if sys.platform != "win32":
            # On Windows, this option would let two servers share a port.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.setblocking(False)
        listening.bind(address)
        listening.listen(BACKLOG)
    except BaseException:
        listening.close()
        raise
    return listening
