"""Find and end processes that carry a mark: ``descendants_watch.py MARK`` ends them when its standard input ends.

A mark is the beginning of an environment variable, ``NAME=VALUE``. Programs inherit it, also daemons that have left
their process group. Run as a program, this module holds one end of a pipe whose other end the server holds, so that
it notices every end of the server, SIGKILL included. Imports nothing of the server, to start quickly. Linux only.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from typing import Final

PASSES: Final = 50
"""Limit of the attempts to kill processes that start others meanwhile."""

PAUSE_S: Final = 0.01


def marked(mark: str) -> set[int]:
    """Return the running processes with ``mark`` in their environment, and all of their descendants.

    Raises:
        OSError: there is no ``/proc``.
    """
    variable = b"\0" + os.fsencode(mark)
    parents: dict[int, int] = {}
    found: set[int] = set()
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        # A process may end at any time, and that of another user cannot be read.
        with suppress(OSError):
            stat = _read(f"/proc/{entry}/stat")
            # pid (name) state parent ...: the name may contain anything, parentheses included.
            state, parent = stat[stat.rindex(b")") + 2 :].split(b" ", 2)[:2]
            if state in (b"Z", b"X"):
                continue
            process = int(entry)
            parents[process] = int(parent)
            if variable in b"\0" + _read(f"/proc/{entry}/environ"):
                found.add(process)
    # A program that overwrites or clears its environment is found by its parent.
    left = set(parents) - found
    while descended := {process for process in left if parents[process] in found}:
        found |= descended
        left -= descended
    return found - {os.getpid()}


def send(mark: str, number: signal.Signals) -> bool:
    """Send a signal to all processes with ``mark``; return whether there are any."""
    processes = marked(mark)
    for process in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, number)
    return bool(processes)


def kill(mark: str) -> None:
    """Kill all processes with ``mark``, including those that they start meanwhile. Bounded; nothing on Windows."""
    if sys.platform == "win32":
        return
    none = 0
    for _ in range(PASSES):
        # While a process executes another program, its environment is empty for a moment.
        none = 0 if send(mark, signal.SIGKILL) else none + 1
        if none == 2:
            return
        time.sleep(PAUSE_S)


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read()


if __name__ == "__main__":
    while os.read(0, 1):
        pass
    kill(sys.argv[1])
