"""The requests of one client that other replicas carry out, and the sessions whose events come from there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from jumpseat.cluster.relay.calls import FEED, OPENING, SEEN, SENT, Call
from jumpseat.cluster.relay.client_sessions import Openings
from jumpseat.cluster.relay.feed import Feed
from jumpseat.cluster.relay.remote import RemoteReplica
from jumpseat.rpc.connection import Connection


class Connecting(Protocol):
    """Connects clients to other replicas, as :class:`jumpseat.cluster.relay.replica_connections.Links`."""

    def connect_to(
        self,
        replica: str,
        connection: Connection,
        find_feed: Callable[[str], Feed | None],
        on_moved: Callable[[RemoteReplica, str], None],
        on_close: Callable[[RemoteReplica], None],
        again: Callable[[Call], None],
    ) -> RemoteReplica:
        """Connect a client of this replica to another one."""
        ...

    def forget_remote(self, remote: RemoteReplica) -> None:
        """Forget a connection to another replica that has ended."""
        ...


class Relays:
    """The other replicas that a client uses. ``again`` gets each request that a replica has not carried out."""

    def __init__(
        self, links: Connecting, connection: Connection, openings: Openings, again: Callable[[Call], None]
    ) -> None:
        self._links = links
        self._connection = connection
        self._openings = openings
        self._again = again
        self._places: dict[str, str] = {}
        self._remotes: dict[str, RemoteReplica] = {}

    def place(self, session_id: str) -> str | None:
        """Return the replica that requests about a session went to; ``None`` if it is not known to run it."""
        place = self._places.get(session_id)
        return place if place in self._remotes else None

    def forget_place(self, session_id: str) -> None:
        """Forget which replica runs a session."""
        self._places.pop(session_id, None)

    def send(self, call: Call, replica: str) -> None:
        """Let another replica carry out a request."""
        remote = self._remotes.get(replica)
        if remote is None:
            remote = self._remotes[replica] = self._links.connect_to(
                replica,
                self._connection,
                self._openings.find_feed,
                self._handle_moved,
                self._handle_close,
                self._try_again,
            )
        self._places[call.session_id] = replica
        self._openings.remember_when_done(call)
        remote.call(call, self._params_of_opening(call, remote) if call.method in OPENING else {})

    def close(self) -> None:
        """Leave the other replicas: the client has hung up."""
        for remote in list(self._remotes.values()):
            remote.close()

    def _params_of_opening(self, call: Call, remote: RemoteReplica) -> dict[str, Any]:
        """Return what the owner of a session has to know of a client that opens the session."""
        more: dict[str, Any] = {SENT: call.sent} if call.sent else {}
        feed = self._openings.feed(call.session_id)
        if not feed.flows_from(remote):
            seen = feed.switch(remote)
            more |= {FEED: feed.number, SEEN: seen.encode() if seen is not None else None}
        return more

    def _try_again(self, call: Call) -> None:
        self.forget_place(call.session_id)
        self._again(call)

    def _handle_moved(self, remote: RemoteReplica, session_id: str) -> None:
        if self._places.get(session_id) == remote.there:
            del self._places[session_id]
        feed = self._openings.find_feed(session_id)
        # Another replica may have told earlier.
        if feed is not None and feed.comes_from(remote):
            self._openings.move(session_id)

    def _handle_close(self, remote: RemoteReplica) -> None:
        if self._remotes.get(remote.there) is remote:
            del self._remotes[remote.there]
            self._places = {name: place for name, place in self._places.items() if place != remote.there}
        self._links.forget_remote(remote)
        for session_id in self._openings.fed_by(remote):
            self._openings.move(session_id)
