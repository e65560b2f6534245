"""End the processes that child processes leave behind, including daemons that have left their process group.

Child processes get an environment variable that marks them as those of this server and of one owner, a session.
All of their descendants inherit the variable. The processes of a session end with the session. If the server ends,
for whatever reason, :mod:`jumpseat.system.descendants_watch` ends those of all sessions: a small program started
with the first tool call. Linux only: elsewhere, only process groups are ended (see docs/platforms.md).
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from jumpseat.system import descendants_watch
from jumpseat.system.descendants_watch import PAUSE_S

log = logging.getLogger(__name__)

PREFIX: Final = "JUMPSEAT_CHILD_"
"""The beginning of the names of marks. A server that runs below another one has its own mark."""

WATCH_S: Final = 0.3
"""Time limit, at the end of the server, for the end of all processes."""


class Descendants:
    """The processes that descend from this server."""

    def __init__(self) -> None:
        self._name = PREFIX + uuid.uuid4().hex
        self._owners: set[str] = set()
        self._watch: subprocess.Popen[bytes] | None = None

    def marked(self, environ: Mapping[str, str], owner: str) -> dict[str, str]:
        """Return ``environ`` with the mark of ``owner``, for its child processes."""
        if sys.platform != "linux":
            return dict(environ)
        self._owners.add(owner)
        if self._watch is None or self._watch.poll() is not None:
            self._start_watch()
        return {**environ, self._name: owner}

    async def end(self, owner: str, grace_s: float) -> None:
        """End the processes of ``owner`` with SIGTERM, then SIGKILL after ``grace_s`` seconds.

        Not cancellable, but bounded.
        """
        if owner not in self._owners:
            return
        self._owners.discard(owner)
        mark = f"{self._name}={owner}\0"
        with anyio.CancelScope(shield=True), suppress(OSError):
            # In a thread, because there may be many processes.
            if not await anyio.to_thread.run_sync(descendants_watch.send, mark, signal.SIGTERM):
                return
            with anyio.move_on_after(grace_s):
                # Polled, because the system notifies only parents.
                while await anyio.to_thread.run_sync(descendants_watch.marked, mark):  # noqa: ASYNC110
                    await anyio.sleep(PAUSE_S)
            await anyio.to_thread.run_sync(descendants_watch.kill, mark)

    def close(self) -> None:
        """Kill all processes, and wait for their end, for at most :data:`WATCH_S`."""
        if self._watch is not None and self._watch.stdin is not None:
            self._watch.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                self._watch.wait(WATCH_S)

    def _start_watch(self) -> None:
        command = [sys.executable, "-I", "-S", str(Path(descendants_watch.__file__)), f"{self._name}="]
        try:
            self._watch = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ},
                # Signals of a terminal, or to the process group of the server, do not reach this process.
                start_new_session=True,
            )
        except OSError as error:
            log.warning("processes that leave their group will outlive a killed server: %s", error)
