"""Schedule compactions of a session: when they start, and one at a time, in a separate task.

:mod:`jumpseat.agent.compaction.compaction` does the work.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import anyio
from anyio.abc import TaskGroup
from msgspec import Struct
from msgspec.structs import replace

from jumpseat.agent.model import Cleared
from jumpseat_protocol.sessions import InfiniteSessionConfig

MIN_CORRECTION: Final = 0.5
MAX_CORRECTION: Final = 4.0

FULL_SHARE: Final = 0.75
"""The share of the context at which results of tools are cleared."""

MIN_FREED_SHARE: Final = 0.1
"""The share of the context that clearing has to free: for less, the provider's cache is worth more."""

DEFAULT_BACKGROUND: Final = 0.8

WORKING_WINDOW: Final = 24_000
"""The most tokens that this is a share of: a larger window is no reason to send old results with each request.

``benchmarks/context.py`` compares such values."""

REMAINING_SHARE: Final = 0.2
"""The share of the context that calls and cleared results may take."""

MIN_EARLY_LIMIT: Final = 16_000
"""The smallest prompt limit with early summaries: models with less are mostly small, and slow to summarize."""

STILLS: Final = 2
"""Requests in a row that grow without a growing count, until a provider is taken to cut off prompts."""
MIN_GROWTH_TOKENS: Final = 100
"""Estimated tokens from which a request counts as grown."""
MIN_COUNT: Final = 1000
"""Tokens from which a count can show a cut: less is no window of a model."""
STILL_SHARE: Final = 0.01
"""The share by which a count may vary and still be the same."""


class CompactionPolicy(Struct, frozen=True):
    """The conditions for automatic compaction. Thresholds are shares of the model's prompt limit.

    From ``background`` on, a summary is made while the session works on; from ``exhaustion`` on, the session waits
    for it. With ``clears_results``, results of tools are cleared before that: see ``agent/clearing``.
    """

    enabled: bool = True
    clears_results: bool = True
    background: float = DEFAULT_BACKGROUND
    exhaustion: float = 0.95

    def most_remaining(self, prompt_limit: int) -> int | None:
        """Return the tokens of calls and cleared results from which on a summary is made before ``background``.

        ``None`` for windows that are too small for that, and where ``background`` is configured.
        """
        if not self.clears_results or self.background != DEFAULT_BACKGROUND or prompt_limit < MIN_EARLY_LIMIT:
            return None
        return round(min(REMAINING_SHARE * prompt_limit, FULL_SHARE * WORKING_WINDOW))

    def overridden_by(self, config: InfiniteSessionConfig | None) -> CompactionPolicy:
        """Return the policy with the values that a session configures."""
        if config is None:
            return self
        configured = {
            "enabled": config.enabled,
            "background": config.background_compaction_threshold,
            "exhaustion": config.buffer_exhaustion_threshold,
        }
        return replace(self, **{name: value for name, value in configured.items() if value is not None})

    def clears(self, used: int, prompt_limit: int) -> bool:
        """Return whether results are cleared if ``used`` of the tokens of a prompt are used."""
        return self.enabled and self.clears_results and used >= FULL_SHARE * min(prompt_limit, WORKING_WINDOW)


class Compactor:
    """Runs the compactions of one session, and calibrates token estimates.

    ``trigger`` is the trigger of the running compaction, as on the wire; ``None`` if none runs. ``last_size`` is
    the size of the conversation after the last compaction, in estimated tokens. ``cleared`` is what the provider
    has left out of the last request.
    """

    def __init__(self, tasks: TaskGroup) -> None:
        self.trigger: str | None = None
        self.last_size: int | None = None
        self.cleared: Cleared | None = None
        self._tasks = tasks
        self._correction = 1.0
        # The last estimate and count of a request, and how often the count has stood still.
        self._last = (0, 0)
        self._stills = 0
        # Of the last compaction.
        self._scope: anyio.CancelScope | None = None
        self._settled: anyio.Event | None = None
        self._finished: anyio.Event | None = None
        self._on_cancel: Callable[[], None] | None = None

    def start(self, trigger: str, work: Callable[[], Awaitable[None]], on_cancel: Callable[[], None]) -> None:
        """Start ``work``, which raises nothing but cancellation. ``on_cancel`` is called if it is cancelled."""
        self.trigger = trigger
        self._on_cancel = on_cancel
        self._scope = anyio.CancelScope()
        self._settled, self._finished = anyio.Event(), anyio.Event()
        self._tasks.start_soon(self._run, work, self._scope, self._settled, self._finished)

    async def wait_until_idle(self) -> None:
        """Wait until no compaction runs: it has ended, or was cancelled."""
        if self._settled is not None:
            await self._settled.wait()

    async def wait_until_finished(self) -> None:
        """Wait until the task of the last compaction has ended."""
        if self._finished is not None:
            await self._finished.wait()

    def cancel(self) -> bool:
        """Cancel the running compaction; returns whether one was running."""
        if self.trigger is None or self._scope is None or self._settled is None:
            return False
        self.trigger = None
        self._scope.cancel()
        on_cancel, self._on_cancel = self._on_cancel, None
        if on_cancel is not None:
            on_cancel()
        self._settled.set()
        return True

    def calibrate(self, estimated: int, counted: int) -> None:
        """Adjust later estimates to a provider's count of the same tokens. A count of zero is ignored."""
        if estimated > 0 and counted > 0:
            self._correction = min(max(counted / estimated, MIN_CORRECTION), MAX_CORRECTION)

    def note_count(self, estimated: int, counted: int) -> bool:
        """Note a provider's count; return whether it has not grown with the last :data:`STILLS` requests."""
        (before, last), self._last = self._last, (estimated, counted)
        grows = estimated - before > MIN_GROWTH_TOKENS
        still = last >= MIN_COUNT and counted < estimated and abs(counted - last) <= last * STILL_SHARE
        self._stills = self._stills + 1 if grows and still else 0
        return self._stills >= STILLS

    def apply_calibration(self, estimated: int) -> int:
        """Return an estimate as the provider would probably count it."""
        return round(estimated * self._correction)

    async def _run(
        self,
        work: Callable[[], Awaitable[None]],
        scope: anyio.CancelScope,
        settled: anyio.Event,
        finished: anyio.Event,
    ) -> None:
        try:
            with scope:
                await work()
        finally:
            # After a cancellation, another compaction may run by now.
            if self._scope is scope:
                self.trigger = self._on_cancel = None
            settled.set()
            finished.set()
