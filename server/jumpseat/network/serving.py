"""Serve TCP clients from the start of the server to its end."""

from __future__ import annotations

import logging
from collections.abc import Sized
from typing import Protocol

import anyio

from jumpseat.cli import TcpOptions
from jumpseat.errors import JumpseatError
from jumpseat.log_fields import fields
from jumpseat.network.listener import Listener, Newcomer, limits_of_process, open_sockets
from jumpseat.network.peer_user import IS_AVAILABLE as PEER_USER_IS_KNOWN
from jumpseat.network.tls import server_context

log = logging.getLogger(__name__)


class TcpServer(Protocol):
    """The server behind the connections. ``made_token`` is a new connection token to print at the start."""

    made_token: str | None

    @property
    def connections(self) -> Sized: ...

    def connect(self, peer: str) -> Newcomer:
        """Create a connection for a peer, named by its address."""
        ...

    async def close_revoked(self) -> None:
        """Close the connections whose tokens are revoked, until cancelled."""
        ...

    async def wait_stopped(self) -> None:
        """Wait for the request to end the process."""
        ...


async def serve_tcp(options: TcpOptions, server: TcpServer) -> None:
    """Accept connections until the process ends. Prints the port and, if the server made one, the token.

    Raises:
        JumpseatError: the address is in use or unknown, or the certificate is invalid.
    """
    listener = Listener(
        server.connect,
        lambda: len(server.connections),
        limits=limits_of_process(),
        tls=server_context(*options.tls) if options.tls is not None else None,
        same_user=options.same_user and PEER_USER_IS_KNOWN,
    )
    try:
        sockets = await open_sockets(options.host, options.port)
    except OSError as error:
        where = f"port {options.port}" if options.host is None else f"{options.host!r}, port {options.port}"
        raise JumpseatError(f"cannot listen on {where}: {error.strerror or error}") from None
    if options.same_user and not PEER_USER_IS_KNOWN:
        log.warning("there is no connection token: all users of this machine can connect")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listener.run, sockets)
        tasks.start_soon(server.close_revoked)
        log.info("listening", extra=fields(port=sockets[0].getsockname()[1]))
        # SDKs read the first line, people and scripts the second.
        print(f"jumpseat listening on port {sockets[0].getsockname()[1]}", flush=True)  # noqa: T201
        if server.made_token is not None:
            print(f"connection token: {server.made_token}", flush=True)  # noqa: T201
        await server.wait_stopped()
        tasks.cancel_scope.cancel()
