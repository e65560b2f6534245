"""Serve TCP and WebSocket clients from the start of the server to its end."""

from __future__ import annotations

import logging
import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

import anyio

from jumpseat.errors import JumpseatError
from jumpseat.network.listener import Listener, Newcomer, limits_of_process, open_sockets
from jumpseat.network.peer_user import IS_AVAILABLE as PEER_USER_IS_KNOWN
from jumpseat.network.tls import server_context
from jumpseat.options import TcpOptions
from jumpseat.rpc.transport import HEADERS, Framing
from jumpseat.system.log_fields import fields

if TYPE_CHECKING:
    from jumpseat.network.http_door import HttpDoor
    from jumpseat.store.user.page_access import PageAccess

log = logging.getLogger(__name__)


class TcpServer(Protocol):
    """The server behind the connections. ``made_token`` is a new connection token to print at the start."""

    made_token: str | None

    @property
    def pages(self) -> PageAccess | None:
        """The access of pages, if the server has a WebSocket port."""
        ...

    @property
    def open_sockets(self) -> int:
        """The number of connections, and of the streams that some have beside them."""
        ...

    def connect(self, peer: str, framing: Framing = HEADERS) -> Newcomer:
        """Create a connection for a peer, named by its address."""
        ...

    def connect_tcp(self, peer: str) -> Newcomer:
        """Create a connection whose first byte tells the protocol of the client."""
        ...

    def admit(
        self, peer: str, path: str, token: str | None, *, has_origin: bool
    ) -> Callable[[Framing], Newcomer] | None:
        """Return the function that creates a client of the protocol at a path, if its token is accepted."""
        ...

    def admit_http(self, peer: str, path: str, token: str | None, *, has_origin: bool) -> HttpDoor | None:
        """Return what serves the HTTP requests at a path, if there is something, and the token is accepted."""
        ...

    async def close_revoked(self) -> None:
        """Close the connections whose tokens are revoked, until cancelled."""
        ...


async def serve_tcp(options: TcpOptions, server: TcpServer, wait_stopped: Callable[[], Awaitable[None]]) -> None:
    """Accept connections until ``wait_stopped`` returns. Prints the ports and, if the server made one, the token.

    Raises:
        JumpseatError: the address is in use or unknown, the certificate is invalid, or a package is missing.
    """
    tls = server_context(*options.tls) if options.tls is not None else None
    limits = limits_of_process()

    def listener(connect: Callable[[str], Newcomer]) -> Listener:
        return Listener(
            connect,
            lambda: server.open_sockets,
            limits=limits,
            tls=tls,
            same_user=options.same_user and PEER_USER_IS_KNOWN,
        )

    if options.web_port is not None and server.pages is not None:
        # Imported before the sockets are opened, because the package may be missing.
        from jumpseat.network.web_serving import WebServer

        web = WebServer(options, server.pages)
    else:
        web = None
    sockets = await _open(options.host, options.port) if options.serves_tcp else []
    if options.same_user and not PEER_USER_IS_KNOWN:
        log.warning("there is no connection token: all users of this machine can connect")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.close_revoked)
        if sockets:
            tasks.start_soon(listener(server.connect_tcp).run, sockets)
            log.info("listening", extra=fields(port=_port(sockets)))
            # SDKs read the first line, people and scripts the others.
            print(f"jumpseat listening on port {_port(sockets)}", flush=True)  # noqa: T201
        web_port = 0
        if web is not None:
            web_sockets = await _open(options.host, options.web_port or 0)
            web_port = _port(web_sockets)
            connect = web.newcomers(web_port, server.connect, server.admit, server.admit_http)
            tasks.start_soon(listener(connect).run, web_sockets)
            log.info("listening for WebSocket clients", extra=fields(port=web_port))
        try:
            if web is not None:
                # Before its port is printed: whoever reads the port may ask for the servers of the home folder.
                await web.begin()
                if options.page is None:
                    print(f"jumpseat serves WebSocket clients on port {web_port}", flush=True)  # noqa: T201
            if server.made_token is not None and options.page is None:
                print(f"connection token: {server.made_token}", flush=True)  # noqa: T201
            await wait_stopped()
        finally:
            if web is not None:
                web.end()
        tasks.cancel_scope.cancel()


def _port(sockets: list[socket.socket]) -> int:
    return sockets[0].getsockname()[1]


async def _open(host: str | None, port: int) -> list[socket.socket]:
    try:
        return await open_sockets(host, port)
    except OSError as error:
        where = f"port {port}" if host is None else f"{host!r}, port {port}"
        raise JumpseatError(f"cannot listen on {where}: {error.strerror or error}") from None
