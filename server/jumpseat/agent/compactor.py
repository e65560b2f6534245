"""At most one compaction of a session at a time, in a task of its own. What one does is not known here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import anyio
from anyio.abc import TaskGroup

LEAST_CORRECTION: Final = 0.5
MOST_CORRECTION: Final = 4.0


class Compactor:
    """``trigger`` tells why one runs; ``None`` while none does.

    ``not_below`` is what the conversation has to have grown to, in estimated tokens, to be compacted unasked.
    """

    def __init__(self, tasks: TaskGroup) -> None:
        self.trigger: str | None = None
        self.not_below = 0
        self._tasks = tasks
        self._correction = 1.0
        self._scope = anyio.CancelScope()
        self._over = anyio.Event()
        self._over.set()
        self._finished = self._over
        self._on_cancel: Callable[[], None] | None = None

    def start(self, trigger: str, work: Callable[[], Awaitable[None]], on_cancel: Callable[[], None]) -> None:
        """Run ``work``, which raises nothing but cancellation; ``on_cancel`` says so where it is cancelled."""
        self.trigger = trigger
        self._on_cancel = on_cancel
        self._scope = anyio.CancelScope()
        self._over, self._finished = anyio.Event(), anyio.Event()
        self._tasks.start_soon(self._run, work, self._scope, self._over, self._finished)

    async def over(self) -> None:
        """Wait until none runs, or it was cancelled."""
        await self._over.wait()

    async def finished(self) -> None:
        """Wait until nothing of one is left."""
        await self._finished.wait()

    def cancel(self) -> bool:
        """Stop the one that runs; returns whether one did."""
        if self.trigger is None:
            return False
        self.trigger = None
        self._scope.cancel()
        if self._on_cancel is not None:
            self._on_cancel()
        self._over.set()
        return True

    def learn(self, estimated: int, counted: int) -> None:
        """Take note of how many tokens a provider has counted in what was estimated; zero where it does not."""
        if estimated > 0 and counted > 0:
            self._correction = min(max(counted / estimated, LEAST_CORRECTION), MOST_CORRECTION)

    def corrected(self, estimated: int) -> int:
        """An estimate as the provider would probably count it."""
        return round(estimated * self._correction)

    async def _run(
        self,
        work: Callable[[], Awaitable[None]],
        scope: anyio.CancelScope,
        over: anyio.Event,
        finished: anyio.Event,
    ) -> None:
        try:
            with scope:
                await work()
        finally:
            # Another one may run by now, where this one was cancelled.
            if self._scope is scope:
                self.trigger = None
            over.set()
            finished.set()
