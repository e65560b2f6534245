"""What the kernel knows about a server's process: processor time, memory, peak of memory. Linux only."""

from __future__ import annotations

import time
from pathlib import Path


class NotMeasurableError(Exception):
    """The server lacks the measured feature, or the system cannot measure it."""


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has used, with all its threads, in seconds.

    The kernel gives each process a clock, whose number follows from the process id (``clock_getcpuclockid(3)``).
    """
    return time.clock_gettime((~pid << 3) | 2)


def memory_mib(pid: int) -> float:
    """Return the proportional set size of a process and its descendants, in MiB."""
    if not Path("/proc/self/smaps_rollup").exists():
        raise NotMeasurableError("the proportional set size is available on Linux only")
    total_kib = 0
    waiting = [pid]
    while waiting:
        process = Path(f"/proc/{waiting.pop()}")
        try:
            for children in process.glob("task/*/children"):
                waiting += map(int, children.read_text().split())
            rollup = (process / "smaps_rollup").read_text()
        except OSError:
            continue  # the process has ended meanwhile
        total_kib += sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
    return total_kib / 1024


def reset_peak(pid: int) -> float:
    """Make the kernel forget the largest resident set size of a process; return the present one, in MiB."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    return _status_mib(pid, "VmRSS")


def peak_mib(pid: int) -> float:
    """Return the largest resident set size of a process since :func:`reset_peak`, in MiB."""
    return _status_mib(pid, "VmHWM")


def _status_mib(pid: int, name: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    raise NotMeasurableError(f"the process has no {name}")
