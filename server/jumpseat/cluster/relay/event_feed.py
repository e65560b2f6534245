"""The events of one session on their way to one client: from one source at a time, stored ones once, in order.

The source is the lease of the session if this replica owns it, otherwise the connection to its owner. When the
session moves, the feed switches to a new source: events from the previous one are dropped, late ones included, and
the new owner begins behind the last stored event or end of a run that has passed here.

Invariants, whatever order messages arrive in:

- Only the present source passes, and only after it has begun: where this replica owns the session, at once, or when
  the missed events were sent; elsewhere, when the owner has said so with the number of the opening.
- :attr:`Feed.seen` is the last stored item that has passed, so an item passes once.
- Events that are not stored pass in the order of their source, which is behind the stored events before them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import orjson

from jumpseat.cluster.sessions.missed_events import Seen
from jumpseat.rpc.connection import Connection
from jumpseat_protocol.events import Event

_IDLE: Final = "session.idle"
_BEGINNING: Final = frozenset({"user.message", "assistant.turn_start"})


class Feed:
    """The events of one session for one client. ``on_idle`` is called after each run."""

    def __init__(self, client: Connection, session_id: str, on_idle: Callable[[], None] = lambda: None) -> None:
        self.number = 0
        """The number of the present source."""
        self.seen: Seen | None = None
        """The last item that the client has received; ``None`` before the first event."""
        self._client = client
        self._session_id = session_id
        self._on_idle = on_idle
        self._source: object | None = None
        self._is_here = False
        self._flows = False
        self._held: list[Event] | None = None
        client.gates[session_id] = self._admit

    def end(self) -> None:
        """Forget the session: the client has left it."""
        self.cut()
        self._client.gates.pop(self._session_id, None)

    # --- sources --------------------------------------------------------------------------------------------------

    @property
    def flows(self) -> bool:
        """Return whether the present source has begun."""
        return self._flows

    def comes_from(self, source: object) -> bool:
        """Return whether ``source`` is the present one, whether it has begun or not."""
        return self._source is source

    def flows_from(self, source: object) -> bool:
        """Return whether ``source`` is the present one and has begun."""
        return self._flows and self._source is source

    def switch(self, source: object | None, *, here: bool = False) -> Seen | None:
        """Take events from another source once it has begun; return what it has to begin behind.

        ``here`` says that the source is a lease of this replica.
        """
        self.number += 1
        self._source, self._is_here, self._flows, self._held = source, here, False, None
        return self.seen

    def cut(self) -> None:
        """Take no more events until the next :meth:`switch`."""
        self.switch(None)

    def begin(self, seen: Seen | None = None) -> None:
        """Begin with the present source. ``seen`` is the place at which a new client has joined."""
        self._flows = True
        self.settle(seen)

    def begin_from(self, source: object, number: int, seen: Seen | None) -> None:
        """Begin with another replica, if it is the present source and names the present ``number``."""
        if self._source is source and self.number == number:
            self.begin(seen)

    def settle(self, seen: Seen | None) -> None:
        """Note the place at which a client has joined a session."""
        # The clients of other doors take no events.
        if seen is not None and self._client.door is None:
            self.seen = seen

    # --- events of another replica --------------------------------------------------------------------------------

    def take(self, source: object, event: dict[str, Any]) -> bool:
        """Note an event of another replica; return whether it is to be sent."""
        if not self.flows_from(source):
            return False
        self._note(event)
        return True

    # --- events of this replica -----------------------------------------------------------------------------------

    def hold(self) -> None:
        """Hold the events of the lease back until :meth:`release`."""
        self._held = []

    def held(self) -> set[str]:
        """Return the ids of the stored events and ends that are held back."""
        return {event.id for event in self._held or () if event.persisted or event.type == _IDLE}

    def release(self, missed: Iterable[dict[str, Any]]) -> None:
        """Begin: send the stored items that the client has missed, then the events that were held back."""
        held, self._held = self._held or [], None
        self._flows = True
        for item in missed:
            self._note(item)
            self._client.deliver_encoded(self._session_id, orjson.dumps(item))
        for event in held:
            self._client.deliver(self._session_id, event)

    def _admit(self, event: Event) -> bool:
        if not self._is_here:
            return False
        if self._held is not None:
            self._held.append(event)
            return False
        if not self._flows:
            return False
        self._note({"id": event.id, "type": event.type, "ephemeral": not event.persisted})
        return True

    def _note(self, event: dict[str, Any]) -> None:
        kind, in_run = event["type"], self.seen is not None and self.seen.in_run
        if kind == _IDLE:
            self.seen = Seen(event["id"], in_run=False)
            self._on_idle()
        elif not event.get("ephemeral"):
            self.seen = Seen(event["id"], in_run or kind in _BEGINNING)
