"""The latest events of a session in memory, for clients that poll instead of listening.

The log has the persisted events only; the feed has all, in the order they were announced. It begins with the first
poll of a session, so that sessions nobody polls pay nothing for it.
"""

from __future__ import annotations

from collections import deque
from typing import Final

import anyio

from jumpseat_protocol.events import Event

SIZE: Final = 1000


class EventBuffer:
    """``end`` is the number of the next event; events are numbered from the beginning of the feed."""

    def __init__(self) -> None:
        self.end = 0
        self.closed = False
        self._entries: deque[tuple[int, Event]] = deque(maxlen=SIZE)
        self._news = anyio.Event()

    def add(self, event: Event, written: int) -> None:
        """Take an event; ``written`` is how many persisted events the session has, this one included."""
        self._entries.append((written, event))
        self.end += 1
        self._wake()

    def since(self, number: int, written: int, total: int) -> list[tuple[int, Event]] | None:
        """The events from ``number`` on with their ``written``; ``None`` where not all of them are here.

        ``written`` is how many persisted events came before, as a check that the number is one of this feed;
        ``total`` is how many there are now.
        """
        start = self.end - len(self._entries)
        if not start <= number <= self.end:
            return None
        entries = list(self._entries)[number - start :]
        before = entries[0][0] - entries[0][1].persisted if entries else total
        return entries if before == written else None

    def forget(self) -> None:
        """The history was changed: no earlier number holds any more."""
        self._entries.clear()
        self.end += 1
        self._wake()

    def close(self) -> None:
        """Let everybody who waits go."""
        self.closed = True
        self._wake()

    async def wait(self) -> None:
        """Wait for the next event, or the end."""
        await self._news.wait()

    def _wake(self) -> None:
        self._news.set()
        self._news = anyio.Event()
