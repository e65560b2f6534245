"""Report functions that block the event loop, and end a process that waits for functions which do not return.

Everything in the process waits while one function blocks the loop: a thread logs the stack of the loop's thread, so
that nobody has to guess why a server hangs. A task that waits for a function in another thread, such as a read from
a disk that hangs, cannot be cancelled, and the end of the process waits for all tasks.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Final

log = logging.getLogger(__name__)

SAMPLE_S: Final = 0.5
"""Interval at which the thread looks at the loop."""

BLOCKED_S: Final = 1.0
"""Time without an iteration of the loop after which its stack is logged."""

MAX_FRAMES: Final = 40

STEP_S: Final = 0.1
"""Part of the time for the end of the process. After a stop of the whole process, all parts but one are left."""

LOG_S: Final = 1.0
"""Time for logging which functions have not returned: the disk of the log may hang as well."""

_GRACE_S: Final = 0.1
# An event loop that has nothing to do waits in one of these modules.
_IDLE: Final = frozenset({"selectors", "asyncio.windows_events"})


@contextmanager
def watch_loop(sample_s: float = SAMPLE_S, blocked_s: float = BLOCKED_S) -> Generator[None]:
    """Watch the running event loop of this thread until the context ends.

    A block is logged once: the functions, files and lines of the stack, no values and no source text.
    """
    stop = threading.Event()
    arguments = (asyncio.get_running_loop(), threading.get_ident(), stop, sample_s, blocked_s)
    thread = threading.Thread(target=_watch, args=arguments, name="watchdog", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()


def end_within(seconds: float, leave: Callable[[], None]) -> None:
    """Call ``leave``, which ends the process, in a thread after this time; log what has not returned by then."""
    threading.Thread(target=_end, args=(seconds, leave), name="end", daemon=True).start()


def _end(seconds: float, leave: Callable[[], None]) -> None:
    for _ in range(int(seconds / STEP_S)):
        time.sleep(STEP_S)
    reporter = threading.Thread(target=_report_threads, args=(seconds,), daemon=True)
    reporter.start()
    reporter.join(LOG_S)
    leave()


def _report_threads(seconds: float) -> None:
    stacks = {
        thread.name: _describe(frame)
        for thread in threading.enumerate()
        if not thread.daemon and (frame := _frame_of(thread.ident or 0)) is not None
    }
    lines = "\n".join(f"{name}:\n{stack}" for name, stack in stacks.items())
    log.warning("the process ends, although functions have not returned in %g s:\n%s", seconds, lines)


def _watch(
    loop: asyncio.AbstractEventLoop, thread_id: int, stop: threading.Event, sample_s: float, blocked_s: float
) -> None:
    while not stop.wait(sample_s):
        frame = _frame_of(thread_id)
        if frame is None or _is_idle(frame):
            continue
        del frame
        ran = threading.Event()
        try:
            loop.call_soon_threadsafe(ran.set)
        except RuntimeError:
            # The loop is closed.
            return
        if ran.wait(blocked_s):
            continue
        frame = _frame_of(thread_id)
        # After a stop of the whole process, the loop needs a moment as well.
        if frame is not None and not ran.wait(_GRACE_S):
            log.warning("the event loop has been blocked for more than %g s in:\n%s", blocked_s, _describe(frame))
        del frame
        while not ran.is_set() and not stop.is_set():
            ran.wait(sample_s)


def _frame_of(thread_id: int) -> FrameType | None:
    # There is no other way to see the stack of another thread.
    return sys._current_frames().get(thread_id)  # pyright: ignore[reportPrivateUsage]


def _is_idle(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__") in _IDLE


def _describe(frame: FrameType) -> str:
    """Return the calls that lead to ``frame``, the innermost first, one per line."""
    lines: list[str] = []
    current: FrameType | None = frame
    while current is not None and len(lines) < MAX_FRAMES:
        lines.append(f"  {current.f_code.co_qualname} ({current.f_code.co_filename}:{current.f_lineno})")
        current = current.f_back
    return "\n".join(lines)
