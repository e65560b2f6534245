"""The doors of the server: connections of clients of every protocol, on stdio, TCP, WebSocket and HTTP.

Where a door is loaded when the first client comes through it, the import stands in the function that opens it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from jumpseat.agent.client import Client
from jumpseat.options import Options
from jumpseat.rpc.connection import Connection
from jumpseat.rpc.routes import IgnoredMembers, find_route
from jumpseat.rpc.transport import HEADERS, LINES, Framing, Wire
from jumpseat.sessions.access import EVERYTHING, Access
from jumpseat.sessions.context import Caller, Context, Server
from jumpseat.sessions.registry import SessionRegistry

if TYPE_CHECKING:
    from jumpseat.acp.connection import AcpConnection
    from jumpseat.acp.remote.http import HttpConnections
    from jumpseat.acp.replicas.owner import OwnerService
    from jumpseat.ahp.connection import AhpConnection
    from jumpseat.ahp.live.door import Door
    from jumpseat.ahp.replicas.door import ClusterDoor
    from jumpseat.cluster.cluster import Cluster
    from jumpseat.network.http_door import HttpDoor
    from jumpseat.network.listener import Newcomer
    from jumpseat.store.user.page_access import PageAccess

log = logging.getLogger(__name__)

# The name of the editors' door between replicas: see :mod:`jumpseat.acp.replicas.owner`.
ACP_DOOR: Final = "acp"
# Interval at which the connections of revoked tokens are closed.
REVOCATION_CHECK_S: Final = 1.0


class AnyConnection(Protocol):
    """A connection of any protocol."""

    access: Access | None

    @property
    def wire(self) -> Wire: ...

    def abort(self) -> None:
        """Close the connection at once."""
        ...

    def announce(self, params: dict[str, Any], created_by: str | None) -> None:
        """Notify the client of a change in the life of a session, if the client sees sessions of the token."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class ClientConnection(AnyConnection, Client, Protocol):
    """A connection that is itself the client of sessions."""


class Doors:
    """All connections. ``made_token`` is a new connection token to print at the start.

    ``stop`` ends the process: the client on stdio has left, or the last client of a server that is ending.
    """

    def __init__(
        self,
        options: Options,
        server: Server,
        tasks: TaskGroup,
        stop: Callable[[], None],
        *,
        made_token: str | None = None,
        cluster: Cluster | None = None,
    ) -> None:
        self.made_token = made_token
        self.gate = server.process.gate
        self.connections: set[AnyConnection] = set()
        self._server = server
        self._tasks = tasks
        self._stop = stop
        self._cluster = cluster
        self._speaks_acp, self._speaks_ahp = options.acp, options.ahp
        self._ignored_members = IgnoredMembers()
        self._stdio_client: AnyConnection | None = None
        self._acp_http: HttpConnections | None = None
        self._ahp: Door | None = None
        self._cluster_door: ClusterDoor | None = None
        self._guest_editors: dict[Connection, OwnerService] = {}

    @property
    def registry(self) -> SessionRegistry:
        """See :class:`jumpseat.cluster.relay.clients.Server`."""
        return self._server.registry

    def connect_stdio(self) -> Wire:
        """Open the connection of a process on stdio; the caller connects its wire to a transport."""
        if self._speaks_ahp:
            client = self.connect_ahp(EVERYTHING, LINES)
        else:
            client = self.connect_acp() if self._speaks_acp else self.connect()
        self._stdio_client = client
        return client.wire

    @property
    def pages(self) -> PageAccess | None:
        """See :class:`jumpseat.network.serving.TcpServer`."""
        return self.gate.pages

    def connect(self, peer: str | None = None, framing: Framing = HEADERS) -> Connection:
        """Open a new connection; the caller connects its wire to a transport. ``peer`` is a TCP address."""
        connection = self.new_connection(self._handle_disconnect, peer, framing)
        context = self.context_of(connection)
        connection.serve(
            partial(self.find, context)
            if self._cluster is None
            else self._cluster.clients.route(context, connection),
            lambda session_id, question: self.registry.answers(connection, session_id, question),
        )
        self.connections.add(connection)
        return connection

    def connect_tcp(self, peer: str) -> Newcomer:
        """See :class:`jumpseat.network.serving.TcpServer`."""
        # Imported here: servers on stdio do not listen.
        from jumpseat.network.first_byte import TcpNewcomer

        return TcpNewcomer(
            lambda: self.connect(peer),
            lambda: self.connect_acp(self.gate.initial_access, peer=peer),
        )

    def admit(
        self, peer: str, path: str, token: str | None, *, has_origin: bool
    ) -> Callable[[Framing], Newcomer] | None:
        """See :class:`jumpseat.network.serving.TcpServer`.

        Windows of VS Code and pages send origins: they need a token, even if programs of the same user do not.
        """
        from jumpseat.network.site import ACP_PATH, AHP_PATH

        access = self._access_at_once(token, has_origin=has_origin)
        if access is None:
            return None
        connect = {AHP_PATH: self.connect_ahp, ACP_PATH: self.connect_acp}[path]
        return partial(connect, access, peer=peer)

    def admit_http(self, peer: str, path: str, token: str | None, *, has_origin: bool) -> HttpDoor | None:
        """See :class:`jumpseat.network.serving.TcpServer`."""
        from jumpseat.network.site import ACP_PATH

        access = self._access_at_once(token, has_origin=has_origin)
        if access is None or path != ACP_PATH:
            return None
        if self._acp_http is None:
            # Imported here, because most servers have no such client.
            from jumpseat.acp.remote.http import HttpConnections

            self._acp_http = HttpConnections(self.connect_acp)
        return self._acp_http.of(access, peer)

    @property
    def open_sockets(self) -> int:
        """See :class:`jumpseat.network.serving.TcpServer`."""
        return len(self.connections) + (self._acp_http.streams if self._acp_http is not None else 0)

    def _access_at_once(self, token: str | None, *, has_origin: bool) -> Access | None:
        """Return the access of a client whose token comes with its first request."""
        access = self.gate.access_of(token)
        return None if has_origin and not self.gate.knows(token) else access

    def connect_ahp(self, access: Access, framing: Framing, peer: str | None = None) -> AhpConnection:
        # Imported here, because most servers have no such clients.
        from jumpseat.ahp.connection import AhpConnection
        from jumpseat.ahp.live.door import Door

        if self._ahp is None:
            self._ahp = Door(self._server, self._tasks) if self._cluster is None else self._door_of(self._cluster)
        connection = AhpConnection(
            self._ahp, access, self._tasks, self._server.process.secrets, self._forget, framing, peer
        )
        self.connections.add(connection)
        return connection

    def _door_of(self, cluster: Cluster) -> ClusterDoor:
        """Return the door of this replica, which also serves those of other replicas."""
        from jumpseat.ahp.replicas.door import ClusterDoor

        if self._cluster_door is None:
            self._cluster_door = ClusterDoor(self._server, self._tasks, cluster)
        return self._cluster_door

    def find_of_door(
        self, connection: Connection, *, relayed: bool
    ) -> Callable[[str], Callable[[Any], Any] | None]:
        """See :class:`jumpseat.cluster.relay.clients.Server`."""
        assert self._cluster is not None, "only replicas relay"
        find = partial(self.find, self.context_of(connection))
        if connection.door == ACP_DOOR:
            from jumpseat.acp.replicas.owner import OwnerService

            service = self._guest_editors[connection] = OwnerService(connection, find, self.context_of)
            return service.find
        return self._door_of(self._cluster).serve(connection, find, guest=relayed).find

    def leave_door(self, connection: Connection) -> None:
        """See :class:`jumpseat.cluster.relay.clients.Server`."""
        if (service := self._guest_editors.pop(connection, None)) is not None:
            service.guest.leave()
            self.registry.detach_client(service.guest)
            self._server.models.connections.release(service.guest)
        elif self._cluster_door is not None:
            self._cluster_door.leave(connection)

    def new_connection(
        self, on_close: Callable[[Connection], None], peer: str | None, framing: Framing = HEADERS
    ) -> Connection:
        """Create a connection that serves nothing yet."""
        return Connection(
            on_close,
            self._tasks,
            self._server.process.secrets,
            access=self.gate.initial_access,
            peer=peer,
            framing=framing,
        )

    def context_of(self, connection: Caller) -> Context:
        """Return the parts of the server for a connection."""
        server = self._server
        return Context(connection, server.registry, server.models, server.process, server.mcp)

    def find(self, ctx: Context, method: str) -> Callable[[Any], Any] | None:
        """Return the function that serves a method on one connection; ``None`` if there is no such method."""
        return find_route(ctx, self._ignored_members, method)

    def connect_acp(
        self, access: Access | None = EVERYTHING, framing: Framing = LINES, peer: str | None = None
    ) -> AcpConnection:
        """Open the connection of an editor. ``access`` is ``None`` if its first request has to bring a token."""
        # Imported here, because most servers have no such client.
        from jumpseat.acp.connection import AcpConnection

        connection = AcpConnection(
            self._handle_disconnect,
            self._tasks,
            self._server.process.secrets,
            access=access,
            framing=framing,
            peer=peer,
        )
        context = self.context_of(connection)
        if self._cluster is None:
            connection.serve(context)
        else:
            from jumpseat.acp.replicas.relay import Relay

            cluster = self._cluster
            connection.serve(context, lambda acp: Relay(connection, acp, cluster))
        self.connections.add(connection)
        return connection

    def announce(self, kind: str, session_id: str, metadata: dict[str, str] | None, created_by: str | None) -> None:
        """Notify the connections that see sessions of the token ``created_by``."""
        params: dict[str, Any] = {"type": kind, "sessionId": session_id}
        if metadata is not None:
            params["metadata"] = metadata
        self.announce_here(params, created_by)
        if self._cluster is not None:
            self._cluster.announce(params, created_by)

    def announce_here(self, params: dict[str, Any], created_by: str | None) -> None:
        """Notify the connections of this process about the life of a session."""
        for connection in self.connections:
            connection.announce(params, created_by)

    async def close_revoked(self) -> None:
        """Close the connections whose tokens are revoked, until cancelled."""
        while self.gate.can_revoke:
            await anyio.sleep(REVOCATION_CHECK_S)
            for connection in list(self.connections):
                access = connection.access
                if access is None or access.name is None:
                    continue
                if not await anyio.to_thread.run_sync(self.gate.is_valid, access):
                    log.warning("closed a connection: its token %r is revoked", access.name)
                    connection.abort()

    def _handle_disconnect(self, connection: ClientConnection) -> None:
        if self._cluster is not None and isinstance(connection, Connection):
            self._cluster.clients.disconnected(connection)
        self.registry.detach_client(connection)
        self._server.models.connections.release(connection)
        self._forget(connection)

    def _forget(self, connection: AnyConnection) -> None:
        self.connections.discard(connection)
        if connection is self._stdio_client or (self._server.process.ending and not self.connections):
            self._stop()

    def close(self) -> None:
        """Close all connections."""
        for connection in list(self.connections):
            connection.close()
