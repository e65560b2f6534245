"""Processes: how the modules of this Python are run, and how groups of processes are ended."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress


def python_command(module: str) -> list[str]:
    """Return the command that runs a module with this Python; files in the working directory cannot shadow it."""
    return [sys.executable, "-I" if sys.flags.isolated else "-P", "-m", module]


def end_group(leader: int) -> None:
    """Kill a process that leads its process group, with all that it has started; on Windows, the process alone."""
    with suppress(ProcessLookupError):
        if sys.platform == "win32":
            os.kill(leader, signal.SIGTERM)
        else:
            os.killpg(leader, signal.SIGKILL)
