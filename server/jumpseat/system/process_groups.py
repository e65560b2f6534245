"""Process groups of child processes and signals for them, on every platform.

A child that was started with ``start_new_session=True`` leads its own process group. Windows has no process
groups: there, only the child itself is ended (see docs/platforms.md).
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import anyio
from anyio.abc import Process


async def start_group(
    command: Sequence[str],
    cwd: Path,
    environ: Mapping[str, str],
    *,
    stdin: int = subprocess.PIPE,
    stdout: int = subprocess.PIPE,
    stderr: int = subprocess.PIPE,
) -> Process:
    """Start a program that leads its own process group, by default with three pipes.

    Raises:
        OSError: the program cannot be started; ``strerror`` is the reason.
    """
    started: list[Process] = []
    # Cancellation between fork and return would lose the process.
    with anyio.CancelScope(shield=True):
        try:
            started.append(
                await anyio.open_process(
                    command,
                    stdin=stdin,
                    stdout=stdout,
                    stderr=stderr,
                    cwd=cwd,
                    env=environ,
                    start_new_session=True,
                )
            )
        except ValueError as error:
            # A NUL character in a word.
            raise OSError(errno.EINVAL, str(error)) from None
    return started[0]


def terminate_group(leader: int) -> None:
    """Send SIGTERM to the process group of ``leader``; on Windows, end ``leader`` at once.

    Raises:
        ProcessLookupError: the group has no process.
        PermissionError: no process of the group may be signalled.
    """
    _send(leader, signal.SIGTERM)


def kill_group(leader: int) -> None:
    """Send SIGKILL to the process group of ``leader``; on Windows, end ``leader``.

    Raises:
        ProcessLookupError: the group has no process.
        PermissionError: no process of the group may be signalled.
    """
    _send(leader, signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)


def group_exists(leader: int) -> bool:
    """Return whether the process group of ``leader`` has a process, zombies included; False on Windows."""
    if sys.platform == "win32":
        # `os.kill(pid, 0)` would send a console event there.
        return False
    try:
        os.killpg(leader, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def terminate_members(leader: int) -> None:
    """Send SIGTERM to the process group of ``leader``, except to ``leader``; Linux only.

    The leader is the process of a sandbox, with which all processes in the sandbox end at once.
    """
    for member, _ in group_members(leader):
        if member != leader:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(member, signal.SIGTERM)


def group_members(leader: int) -> list[tuple[int, int]]:
    """Return the running processes of the process group of ``leader``, with their parents; Linux only.

    Raises:
        OSError: there is no ``/proc``.
    """
    found: list[tuple[int, int]] = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path("/proc", entry, "stat").read_bytes()
            except OSError:
                continue
            # pid (name) state parent group ...: the name may contain anything, parentheses included.
            state, parent, group = stat[stat.rindex(b")") + 2 :].split(b" ", 3)[:3]
            if int(group) == leader and state not in (b"Z", b"X"):
                found.append((int(entry), int(parent)))
    return found


def _send(leader: int, number: signal.Signals) -> None:
    if sys.platform != "win32":
        os.killpg(leader, number)
        return
    try:
        os.kill(leader, number)
    except PermissionError:
        raise
    except OSError as error:
        # Windows reports an unknown process as an invalid parameter.
        raise ProcessLookupError(error.errno, error.strerror) from None
