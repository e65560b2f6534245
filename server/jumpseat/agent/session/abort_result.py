"""The end of work that was told to stop, for callers that may or may not wait for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any


class Stopped(Awaitable[None]):
    """An awaitable that calls the functions ``waits``, one after the other.

    Unlike a coroutine, it can be dropped: an unfinished wait is cancelled together with its request, and Python
    warns about coroutines that were never awaited.
    """

    def __init__(self, *waits: Callable[[], Awaitable[None]]) -> None:
        self._waits = waits

    def __await__(self) -> Generator[Any, Any, None]:
        return self.wait().__await__()

    async def wait(self) -> None:
        """Wait until all work has ended."""
        for wait in self._waits:
            await wait()
