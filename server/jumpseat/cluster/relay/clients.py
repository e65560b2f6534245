"""The clients of this replica, its own and those that other replicas relay to it, each with its routes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import anyio

from jumpseat.cluster.relay.door_links import DoorLink, LocalTransport
from jumpseat.cluster.relay.fan_out import Handler
from jumpseat.cluster.relay.replica_connections import ReplicaConnections
from jumpseat.cluster.relay.routing import ClientRoutes
from jumpseat.cluster.replicas.handshake import ACCEPTED, SPOKEN, Handshake, decode_versions, refusal
from jumpseat.cluster.sessions.replica import Replica
from jumpseat.rpc.connection import Connection
from jumpseat.rpc.transport import HEADERS, LINES, Framing
from jumpseat.sessions.access import Access
from jumpseat.sessions.context import Context
from jumpseat.sessions.registry import SessionRegistry
from jumpseat_protocol.methods import PROTOCOL_VERSION

if TYPE_CHECKING:
    from jumpseat_protocol.session_fs import SetFsProviderParams

log = logging.getLogger(__name__)


class Server(Protocol):
    """The server that serves a replica's clients, as :class:`jumpseat.doors.Doors`."""

    @property
    def registry(self) -> SessionRegistry: ...

    def context_of(self, connection: Connection) -> Context:
        """Return the parts of the server for a connection."""
        ...

    def new_connection(
        self, on_close: Callable[[Connection], None], peer: str | None, framing: Framing = HEADERS
    ) -> Connection:
        """Create a connection that does not count as one of the server's own."""
        ...

    def find(self, ctx: Context, method: str) -> Handler | None:
        """Return the function that serves a method in this process."""
        ...

    def find_of_door(self, connection: Connection, *, relayed: bool) -> Callable[[str], Handler | None]:
        """Return the function that finds what is served for another door, of this replica or a ``relayed`` one."""
        ...

    def leave_door(self, connection: Connection) -> None:
        """Forget a client of a door that has hung up."""
        ...

    def announce_here(self, params: dict[str, Any], created_by: str | None) -> None:
        """Notify the connections of this server of a change in the life of a session."""
        ...


class Clients:
    """The routes of all clients. Relayed ones are accepted after :meth:`serve`."""

    def __init__(self, replica: Replica, connections: ReplicaConnections) -> None:
        self._replica = replica
        self._connections = connections
        self._server: Server | None = None
        self._routes: dict[Connection, ClientRoutes] = {}

    async def start(self) -> None:
        """Begin to listen to handshakes of other replicas."""
        await self._replica.stream.listen(
            self._replica.stream.names.to(self._replica.membership.id, "open"), self._handle_handshake
        )

    def serve(self, server: Server) -> None:
        """Serve the clients of ``server``, and those of other replicas."""
        self._server = server

    @property
    def relayed(self) -> int:
        """Return the number of clients of other replicas."""
        return len(self._connections.relayed())

    @property
    def own(self) -> int:
        """Return the number of clients of this replica."""
        return sum(not routes.relayed and client.door is None for client, routes in self._routes.items())

    def route(
        self, ctx: Context, connection: Connection, *, relayed: bool = False
    ) -> Callable[[str], Handler | None]:
        """Return the function that finds the handlers of a client's requests."""
        assert self._server is not None, "set before the first client"
        if connection.door is None:
            find_here = partial(self._server.find, ctx)
        else:
            find_here = self._server.find_of_door(connection, relayed=relayed)
        routes = ClientRoutes(self._replica, self._connections, ctx, connection, find_here, relayed=relayed)
        self._routes[connection] = routes
        return routes.find

    def connect_door(self, access: Access, name: str, take: Callable[[bytes], None]) -> DoorLink:
        """Return a connection by which a door of this server reaches the owners of sessions.

        ``name`` is that of the door's protocol. ``take`` takes the messages that come back.
        """
        assert self._server is not None, "set before the first client"
        server = self._server
        connection = server.new_connection(self.disconnected, name, LINES)
        connection.access, connection.protocol, connection.door = access, PROTOCOL_VERSION, name
        connection.handshake_done = True
        connection.wire.connection_made(LocalTransport(take))
        connection.admit()
        find = self.route(server.context_of(connection), connection)

        def close() -> None:
            connection.peer.close()
            self.disconnected(connection)
            server.leave_door(connection)

        forget, wire = self._routes[connection].sessions.forget, connection.wire
        return DoorLink(find, forget, connection.peer.receive, wire.flush, close)

    def disconnected(self, connection: Connection) -> None:
        """Forget a client that has hung up."""
        if (routes := self._routes.pop(connection, None)) is not None:
            routes.close()

    def concerned(self, session_id: str) -> list[ClientRoutes]:
        """Return the routes of the clients that have opened a session."""
        return [routes for routes in self._routes.values() if session_id in routes.sessions]

    async def end(self, limit_s: float) -> None:
        """End the routes of all clients, and wait until other replicas have received everything."""
        tunnels = self._connections.relayed()
        async with anyio.create_task_group() as tasks:
            for routes in list(self._routes.values()):
                tasks.start_soon(routes.end, limit_s)
        for tunnel in tunnels:
            await tunnel.wait_until_sent()

    # --- clients of other replicas --------------------------------------------------------------------------------

    def _handle_handshake(self, _subject: str, data: bytes, reply: str) -> None:
        """Accept the client of another replica; before this server has started, the other one tries again."""
        if self._server is None:
            return
        handshake = Handshake.decode(data)
        answer = ACCEPTED
        if handshake is None or not SPOKEN.fits(decode_versions(handshake.relay)):
            log.warning("the client of a replica is refused: this one relays with protocol %s only", SPOKEN)
            answer = refusal()
        elif handshake.tunnel not in self._connections:
            self._accept(handshake, self._server)
        self._replica.tasks.start_soon(self._replica.stream.send, reply, answer)

    def _accept(self, handshake: Handshake, server: Server) -> None:
        def close(closed: Connection) -> None:
            self._connections.forget(handshake.tunnel)
            self.disconnected(closed)
            if closed.door is None:
                server.registry.detach_client(closed)
            else:
                server.leave_door(closed)

        connection = server.new_connection(close, f"{handshake.label} at {handshake.replica}")
        access = handshake.access
        connection.access = Access(access.name, access.all) if access is not None else None
        connection.protocol = handshake.protocol
        connection.wants_telemetry = handshake.telemetry
        connection.session_fs = _decode_provider(handshake.session_fs)
        connection.door = handshake.door
        connection.handshake_done = True
        connection.serve(
            self.route(server.context_of(connection), connection, relayed=True),
            lambda session_id, question: server.registry.answers(connection, session_id, question),
        )
        self._connections.open(handshake.tunnel, handshake.replica, connection, connection.wire, relayed=True)
        connection.admit()


def _decode_provider(value: Any) -> SetFsProviderParams | None:
    """Return the file system of a client, as its replica describes it; ``None`` if the client has none."""
    if value is None:
        return None
    # Imported here: few clients have a file system.
    from jumpseat_protocol.session_fs import SetFsProviderParams

    return SetFsProviderParams.model_validate(value)
