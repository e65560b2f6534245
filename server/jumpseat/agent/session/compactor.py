"""When a session is compacted, and that it is at most once at a time, in a task of its own.

What a compaction does is not known here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final

import anyio
from anyio.abc import TaskGroup

from jumpseat_protocol.sessions import InfiniteSessionConfig

LEAST_CORRECTION: Final = 0.5
MOST_CORRECTION: Final = 4.0


@dataclass(frozen=True, slots=True)
class CompactionPolicy:
    """When a conversation is compacted by itself: thresholds are shares of what the model can be given."""

    enabled: bool = True
    background: float = 0.8
    exhaustion: float = 0.95

    def overridden_by(self, config: InfiniteSessionConfig | None) -> CompactionPolicy:
        """This, but for what a session says otherwise."""
        if config is None:
            return self
        said = {
            "enabled": config.enabled,
            "background": config.background_compaction_threshold,
            "exhaustion": config.buffer_exhaustion_threshold,
        }
        return replace(self, **{name: value for name, value in said.items() if value is not None})


class Compactor:
    """``trigger`` tells why one runs; ``None`` while none does.

    ``size_then`` is how large the conversation was when the last one had ended, in estimated tokens.
    """

    def __init__(self, tasks: TaskGroup) -> None:
        self.trigger: str | None = None
        self.size_then: int | None = None
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
        on_cancel, self._on_cancel = self._on_cancel, None
        if on_cancel is not None:
            on_cancel()
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
                self.trigger = self._on_cancel = None
            over.set()
            finished.set()
