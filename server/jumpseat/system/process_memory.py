"""The memory of this process: hidden from other processes of the same user, and kept together.

Child processes run with the user's rights: the memory of the server and ``/proc/PID/environ`` would give them its
credentials. Linux only; elsewhere, the functions do nothing (see docs/platforms.md).
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path
from typing import Final

_PR_SET_DUMPABLE: Final = 4
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
_LARGE: Final = 1 << 20
"""The size of a block in bytes from which on it is taken from the system and returned to it."""
_ENVIRONMENT: Final = slice(47, 49)
"""The start and end of the environment, among the fields of ``/proc/PID/stat`` after the name."""


def protect_memory(credentials: Collection[str]) -> None:
    """Make this process unreadable for others, and erase ``credentials`` from its initial environment.

    ``credentials`` are names of variables, which ``os.environ`` keeps. Child processes remain readable. Root can
    read every process that it may trace: if the server runs as root, erasing only empties ``/proc/PID/environ``.
    """
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    try:
        stat = Path("/proc/self/stat").read_bytes()
    except OSError:
        return
    # pid (name) state ...: the name may contain anything, parentheses included.
    begin, end = map(int, stat[stat.rindex(b")") + 2 :].split(b" ")[_ENVIRONMENT])
    if not begin < end:
        return
    for entry in ctypes.string_at(begin, end - begin).split(b"\0"):
        name, equals, value = entry.partition(b"=")
        if equals and name.decode(errors="replace") in credentials:
            ctypes.memset(begin + len(name) + 1, 0, len(value))
        begin += len(entry) + 1


def use_one_arena() -> None:
    """Let all threads take memory from one place, and large blocks from the system, so that less is lost in gaps.

    By default, glibc gives threads places of their own, which grow over hours. Threads of Python take turns anyway.
    It also takes large blocks from the system only until one was returned, and afterwards from the same place: the
    log of a long session would leave a gap there each time.
    Has no effect on threads that have used memory before, and with other C libraries.
    """
    if sys.platform != "linux":
        return
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)
        mallopt(_M_MMAP_THRESHOLD, _LARGE)
