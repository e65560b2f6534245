"""The way of an event from its session to the clients: at once, or when a cluster has stored what came before."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import Final

import anyio

from jumpseat.agent.client import Client
from jumpseat.agent.interfaces import Announcements
from jumpseat.agent.session.clients import Clients
from jumpseat_protocol import events
from jumpseat_protocol.events import Event

SIZE: Final = 1000
"""The number of events that a buffer keeps."""


class EventBuffer:
    """A bounded buffer of events, numbered from its start. ``end`` is the number of the next event."""

    def __init__(self) -> None:
        self.end = 0
        self.closed = False
        self._entries: deque[tuple[int, Event]] = deque(maxlen=SIZE)
        self._changed = anyio.Event()

    def add(self, event: Event, written: int) -> None:
        """Add an event. ``written`` is the number of persisted events of the session, including this one."""
        self._entries.append((written, event))
        self.end += 1
        self._wake()

    def since(self, number: int, written: int, total: int) -> list[tuple[int, Event]] | None:
        """Return the events from ``number`` on, each with its ``written``; ``None`` if some are no longer buffered.

        ``written`` is the number of persisted events before ``number``; it proves that the number belongs to this
        buffer. ``total`` is the current number of persisted events.
        """
        start = self.end - len(self._entries)
        if not start <= number <= self.end:
            return None
        entries = list(self._entries)[number - start :]
        before = entries[0][0] - entries[0][1].persisted if entries else total
        return entries if before == written else None

    def invalidate(self) -> None:
        """Drop all events and invalidate all numbers, because the history was changed."""
        self._entries.clear()
        self.end += 1
        self._wake()

    def close(self) -> None:
        """Wake all waiting clients for the last time."""
        self.closed = True
        self._wake()

    async def wait(self) -> None:
        """Wait for the next event, or for :meth:`close`."""
        await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


class Delivery:
    """Delivers the events of one session to its clients, and to a buffer for clients that poll.

    ``announcements`` holds events back until those before them are stored; ``None`` where they are stored at once.
    """

    def __init__(self, session_id: str, clients: Clients, announcements: Announcements | None) -> None:
        self.announcements = announcements
        # The last stored event, or end of a run, that was delivered, where announcements wait.
        self.last: str | None = None
        # Whether the start of a run was delivered, and not its end.
        self.in_run = False
        self._session_id = session_id
        self._clients = clients
        self._buffer: EventBuffer | None = None

    @property
    def buffer(self) -> EventBuffer:
        """Return the buffer of events for clients that poll; it starts with the first access."""
        if self._buffer is None:
            self._buffer = EventBuffer()
        return self._buffer

    def send(self, event: Event, written: int, only: Client | None = None) -> None:
        """Deliver an event to all clients, or to one. ``written`` is the number of persisted events so far."""
        if self.announcements is None:
            self._deliver(event, written, only)
        else:
            self.announcements.announce(partial(self._deliver_stored, event, written, only))

    def keep(self, idle: Event) -> None:
        """Keep the end of a run before it is sent: a replica that takes the session over may have to deliver it."""
        if self.announcements is not None:
            self.announcements.keep(idle)

    def invalidate(self) -> None:
        """Drop what is buffered, because the history was changed."""
        if self._buffer is not None:
            self._buffer.invalidate()

    def close(self) -> None:
        """Wake the clients that poll for the last time."""
        if self._buffer is not None:
            self._buffer.close()

    def _deliver_stored(self, event: Event, written: int, only: Client | None) -> None:
        self._deliver(event, written, only)
        if event.persisted:
            self.last = event.id
        if isinstance(event.payload, events.TurnStart):
            self.in_run = True
        elif isinstance(event.payload, events.SessionIdle):
            self.last, self.in_run = event.id, False

    def _deliver(self, event: Event, written: int, only: Client | None) -> None:
        if self._buffer is not None:
            self._buffer.add(event, written)
        for client in self._clients if only is None else [only]:
            client.deliver(self._session_id, event)
