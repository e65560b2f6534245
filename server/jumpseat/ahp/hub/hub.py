"""The channels of a server, and the clients that subscribe to them. Sends everything; decides nothing.

A client is known by the id that it has chosen, together with its token: another token with the same id is another
client. A client whose connection is lost keeps its place for :data:`GRACE_S`: until then, the channels that
it subscribes to stay open, and it gets what it has missed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import orjson
from msgspec import Struct, field

from jumpseat.ahp.hub.channels import RING_ACTIONS, Channel, Origin, Subscriber, envelope_of
from jumpseat.ahp.hub.numbers import Numbers
from jumpseat.ahp.states.values import Action, JsonObject, Reducer, State
from jumpseat.errors import InvalidRequestError, UnknownItemError
from jumpseat.sessions.access import EVERYTHING, Access

GRACE_S: Final = 300.0
"""The time that a client without a connection has to come back."""
MOST_CLIENTS: Final = 10_000
"""The clients that are remembered; of those without a connection, the ones that left first are forgotten."""


class Identity(NamedTuple):
    """The identity of a client: the clients of different tokens may have the same name."""

    client_id: str
    access: Access


class Known(Struct, eq=False):
    """A client. ``expires_at`` is the end of its grace, ``None`` while it is connected."""

    identity: Identity
    connection: Subscriber | None = None
    subscriptions: set[str] = field(default_factory=set[str])
    expires_at: float | None = None


class Hub:
    """The channels and clients of one server. ``clock`` returns seconds that only grow."""

    def __init__(
        self,
        numbers: Numbers | None = None,
        clock: Callable[[], float] = time.monotonic,
        ring_actions: int = RING_ACTIONS,
    ) -> None:
        self.numbers = numbers or Numbers()
        self._clock = clock
        self._ring_actions = ring_actions
        # By URI; those of which each token has its own also by the name of the token.
        self._channels: dict[tuple[str, str | None], Channel] = {}
        self._own: dict[str, tuple[State, Reducer]] = {}
        # The further channels that belong to one, in the order in which they were opened.
        self._parts: dict[str, dict[str, None]] = {}
        self._clients: dict[Identity, Known] = {}
        self._by_connection: dict[Subscriber, Known] = {}

    # --- channels -----------------------------------------------------------------------------------------------

    def open(self, uri: str, state: State, reducer: Reducer, created_by: str | None = None) -> Channel:
        """Open a channel. Clients that have seen an earlier one at the same address get a snapshot of this one.

        A channel that is open in the same state is left as it is.
        """
        before = self._channels.get((uri, None))
        if before is not None and before.created_by == created_by and before.state == state:
            return before
        channel = self._channels[uri, None] = Channel(
            uri, state, reducer, self.numbers.next(), created_by, self._ring_actions
        )
        for subscriber in before.subscribers if before is not None else ():
            subscriber.renew(uri)
        return channel

    def open_part(self, whole: str, uri: str, state: State, reducer: Reducer) -> Channel:
        """Open a channel that belongs to another one: for those who see that, and until that is closed."""
        owner = self._channels[whole, None]
        self._parts.setdefault(whole, {})[uri] = None
        channel = self.open(uri, state, reducer, owner.created_by)
        for subscriber in list(owner.subscribers):
            subscriber.show_part(whole, channel)
        return channel

    def close_part(self, whole: str, uri: str) -> None:
        """Close a channel that belongs to another one."""
        self._parts.get(whole, {}).pop(uri, None)
        self.close(uri)
        owner = self._channels.get((whole, None))
        for subscriber in list(owner.subscribers) if owner is not None else ():
            subscriber.hide_part(uri)

    def parts(self, whole: str) -> list[str]:
        """Return the URIs of the further channels that belong to one."""
        return list(self._parts.get(whole, ()))

    def open_for_each(self, uri: str, state: State, reducer: Reducer) -> None:
        """Open a channel of which each token has its own, with this state at first."""
        self._own[uri] = state, reducer

    def publish_for_each(self, uri: str, action: Action) -> None:
        """Publish an action on a channel of which each token has its own; those opened later begin after it."""
        state, reducer = self._own[uri]
        self._own[uri] = reducer(state, action), reducer
        for name in [name for known, name in self._channels if known == uri]:
            self.publish(uri, action, access=Access(name))

    def close(self, uri: str) -> None:
        """Close a channel with those that belong to it. Its subscribers learn that by other messages."""
        gone = (uri, *self._parts.pop(uri, ()))
        for one in gone:
            self._channels.pop((one, None), None)
        for known in self._clients.values():
            known.subscriptions.difference_update(gone)

    def get(self, uri: str, access: Access = EVERYTHING) -> Channel | None:
        """Return a channel that a connection with these rights sees."""
        if uri in self._own:
            return self._own_channel(uri, access.name)
        channel = self._channels.get((uri, None))
        return None if channel is None or not access.sees(channel.created_by) else channel

    def _own_channel(self, uri: str, name: str | None) -> Channel:
        known = self._channels.get((uri, name))
        if known is None:
            state, reducer = self._own[uri]
            known = Channel(uri, state, reducer, self.numbers.next(), name, self._ring_actions)
            self._channels[uri, name] = known
        return known

    def publish(self, uri: str, action: Action, origin: Origin | None = None, access: Access = EVERYTHING) -> bool:
        """Apply an action and send it to all subscribers; return ``False`` if it changes nothing.

        Such an action is not sent: an echo without a change would be answered by some clients without an end.
        """
        channel = self.get(uri, access)
        if channel is None or not channel.apply(action):
            return False
        channel.send(action, self.numbers.next(), origin)
        return True

    def refuse(self, origin: Origin, uri: str, action: Action, reason: str) -> None:
        """Refuse a dispatched action. Only its sender is told: others would apply the action nevertheless."""
        known = self._clients.get(Identity(origin.client_id, origin.access))
        sender = origin.via or (known.connection if known is not None else None)
        if sender is not None:
            sender.deliver(envelope_of(uri, action, self.numbers.last, origin, reason))

    def is_wanted(self, uris: Iterable[str]) -> bool:
        """Return whether a client subscribes to one of the channels or their parts, or may come back to it."""
        wanted = {one for uri in uris for one in (uri, *self._parts.get(uri, ()))}
        return any(wanted & known.subscriptions for known in self._clients.values())

    def all_wanted(self) -> set[str]:
        """Return all channels that a client subscribes to, or may come back to."""
        return set[str]().union(*(known.subscriptions for known in self._clients.values()))

    # --- clients ------------------------------------------------------------------------------------------------

    def tokens_of(self, client_id: str) -> list[Access]:
        """Return the rights of the clients with an id that are connected or may come back."""
        return [identity.access for identity in self._clients if identity.client_id == client_id]

    def knows(self, connection: Subscriber) -> bool:
        """Return whether a connection is that of a client."""
        return connection in self._by_connection

    def introduce(self, connection: Subscriber, access: Access) -> None:
        """Make a connection that of its client, without any subscriptions."""
        identity = Identity(connection.client_id, access)
        if (known := self._clients.pop(identity, None)) is not None:
            self._drop(known)
        self._clients[identity] = self._by_connection[connection] = Known(identity, connection)
        self._forget_some()

    def subscribe(self, connection: Subscriber, uri: str, turns: int | None = None) -> JsonObject:
        """Subscribe a client to a channel and return a snapshot of the channel's state.

        Raises:
            UnknownItemError: there is no such channel for the client.
        """
        known = self._known(connection)
        channel = self.get(uri, known.identity.access)
        if channel is None:
            raise UnknownItemError("channel", uri)
        known.subscriptions.add(uri)
        channel.subscribers[connection] = None
        return channel.snapshot(self.numbers.last, turns)

    def has_subscriber(self, uri: str, connection: Subscriber) -> bool:
        """Return whether a connection subscribes to a channel."""
        known = self._by_connection.get(connection)
        return known is not None and uri in known.subscriptions

    def unsubscribe(self, connection: Subscriber, uri: str) -> None:
        """End a subscription. Unknown channels are ignored."""
        known = self._known(connection)
        known.subscriptions.discard(uri)
        if (channel := self.get(uri, known.identity.access)) is not None:
            channel.subscribers.pop(connection, None)

    def leave(self, connection: Subscriber) -> None:
        """Keep the place of a client whose connection is lost."""
        for channel in self._channels.values():
            channel.subscribers.pop(connection, None)
        if (known := self._by_connection.pop(connection, None)) is not None:
            known.connection, known.expires_at = None, self._clock() + GRACE_S

    def expire(self) -> list[Identity]:
        """Forget the clients whose grace has ended, and return them."""
        now = self._clock()
        gone = [
            identity
            for identity, known in self._clients.items()
            if known.expires_at is not None and known.expires_at <= now
        ]
        for identity in gone:
            del self._clients[identity]
        return gone

    def reconnect(self, connection: Subscriber, access: Access, last_seen: int, uris: Iterable[str]) -> JsonObject:
        """Give a client its place again, and return what it has missed: actions, or else snapshots.

        A client that is unknown, as all are after a restart, gets a place.
        """
        identity = Identity(connection.client_id, access)
        known = self._clients.setdefault(identity, Known(identity))
        self._forget_some()
        came_from_ahead = last_seen > self.numbers.last or not self.numbers.may_have_given(last_seen)
        self.numbers.raise_to(last_seen)
        self._drop(known)
        self._by_connection[connection] = known
        known.connection, known.expires_at = connection, None
        wanted = list(dict.fromkeys(uris))
        found = {uri: channel for uri in wanted if (channel := self.get(uri, access)) is not None}
        known.subscriptions = set(found)
        for channel in found.values():
            channel.subscribers[connection] = None
        missed = {uri: channel.after(last_seen) for uri, channel in found.items()}
        kept = [actions for actions in missed.values() if actions is not None]
        if came_from_ahead or len(kept) < len(missed):
            number = self.numbers.last
            return {"type": "snapshot", "snapshots": [channel.snapshot(number) for channel in found.values()]}
        actions = [orjson.Fragment(envelope) for _, envelope in sorted(one for actions in kept for one in actions)]
        return {"type": "replay", "actions": actions, "missing": [uri for uri in wanted if uri not in found]}

    def _known(self, connection: Subscriber) -> Known:
        known = self._by_connection.get(connection)
        if known is None:
            raise InvalidRequestError("another connection has taken the place of this one")
        return known

    def _drop(self, known: Known) -> None:
        """End the subscriptions of the connection that a client had before."""
        if known.connection is not None:
            self._by_connection.pop(known.connection, None)
            for channel in self._channels.values():
                channel.subscribers.pop(known.connection, None)

    def _forget_some(self) -> None:
        while len(self._clients) > MOST_CLIENTS:
            gone = next((one for one, known in self._clients.items() if known.connection is None), None)
            if gone is None:
                return
            del self._clients[gone]
