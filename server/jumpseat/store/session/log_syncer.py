"""Syncs the logs of all sessions, each a moment after its last write.

One task waits for all of them, and those that are due at about the same time share a trip to the worker threads.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from time import monotonic
from typing import Final, Protocol

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

logger = logging.getLogger(__name__)

QUIET_S: Final = 0.2
"""Time without writes after which a log is synced and closed."""

TOGETHER_S: Final = 0.05
"""The time by which a log may be synced early, together with a log that is due, in seconds."""

THREADS: Final = 4
"""The threads among which the logs that are due are divided: disks sync several files at once faster."""


class Log(Protocol):
    """A log that is open."""

    written: int
    """The number of writes so far."""

    def detach(self) -> int | None:
        """Return the open file, which the caller closes; ``None`` if there is none."""
        ...


class LogSyncer:
    """Syncs and closes logs that have not been written for ``QUIET_S``, in a task of ``tasks``."""

    def __init__(self, tasks: TaskGroup, clock: Callable[[], float] = monotonic) -> None:
        self._tasks = tasks
        self._clock = clock
        # The time and the number of writes of each log when it was asked about last, the earliest time first.
        self._waiting: dict[Log, tuple[float, int]] = {}
        self._running = False

    def sync_soon(self, log: Log) -> None:
        """Sync and close a log once it is quiet. Does nothing if that is under way."""
        if log in self._waiting:
            return
        self._waiting[log] = (self._clock(), log.written)
        if not self._running:
            self._running = True
            self._tasks.start_soon(self._run)

    async def _run(self) -> None:
        try:
            while self._waiting:
                earliest, _ = next(iter(self._waiting.values()))
                await anyio.sleep(max(0.0, earliest + QUIET_S - self._clock()))
                await _save([file for log in self._take_quiet() if (file := log.detach()) is not None])
        finally:
            self._running = False

    def _take_quiet(self) -> list[Log]:
        """Remove the logs that are due, and return those that were not written meanwhile; the others wait again."""
        now = self._clock()
        due: list[Log] = []
        for log, (since, _) in self._waiting.items():
            if since + QUIET_S - TOGETHER_S > now:
                break
            due.append(log)
        quiet: list[Log] = []
        for log in due:
            _, written = self._waiting.pop(log)
            if written == log.written:
                quiet.append(log)
            else:
                self._waiting[log] = (now, log.written)
        return quiet


async def _save(files: list[int]) -> None:
    parts = [part for first in range(THREADS) if (part := files[first::THREADS])]
    if len(parts) == 1:
        await anyio.to_thread.run_sync(sync_and_close, parts[0])
        return
    async with anyio.create_task_group() as tasks:
        for part in parts:
            tasks.start_soon(anyio.to_thread.run_sync, sync_and_close, part)


def sync_and_close(files: list[int]) -> None:
    """Sync and close open files, blocking; failures are logged."""
    for fd in files:
        try:
            os.fsync(fd)
        except OSError as error:
            logger.error("cannot sync a session log: %s", error.strerror or error)
        finally:
            os.close(fd)
