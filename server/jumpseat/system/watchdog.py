"""Report functions that block the event loop: a thread logs the stack of the loop's thread.

Everything in the process waits while one function does not return. The log names the function, so that nobody has
to guess why a server hangs.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import Final

log = logging.getLogger(__name__)

SAMPLE_S: Final = 0.5
"""Interval at which the thread looks at the loop."""

BLOCKED_S: Final = 1.0
"""Time without an iteration of the loop after which its stack is logged."""

MAX_FRAMES: Final = 40

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
