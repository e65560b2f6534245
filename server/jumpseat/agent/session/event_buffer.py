"""The latest events of a session in memory, for clients that poll.

The log holds persisted events only; the buffer holds all events, in the order of their announcement. It starts with
the first poll of a session, so that sessions without polling clients have no cost.
"""

from __future__ import annotations

from collections import deque
from typing import Final

import anyio

from jumpseat_protocol.events import Event

SIZE: Final = 1000


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
