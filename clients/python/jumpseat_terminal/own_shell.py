"""Run a shell command of the user's own, in the session's folder and without a terminal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from codecs import getincrementaldecoder
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import Process

from jumpseat_transcript.user_commands import UserCommand

MOST_CHARS: Final = 1_000_000
"""Characters of an output that are kept: its end."""


class OwnCommand:
    """A running command. ``changed`` is called when there is more output."""

    def __init__(self, line: str, folder: Path, changed: Callable[[], None]) -> None:
        self.line = line
        self.started = time.monotonic()
        self.output = ""
        self._folder = folder
        self._changed = changed
        self._process: Process | None = None
        self._cancelled = False

    async def run(self) -> UserCommand:
        """Run the command to its end.

        Raises:
            OSError: the shell cannot be started.
        """
        if sys.platform == "win32":
            command: str | list[str] = self.line
        else:
            command = [os.environ.get("SHELL") or "/bin/sh", "-c", self.line]
        # A process group of its own, so that ctrl-c on the screen reaches it only through `cancel`.
        async with await anyio.open_process(
            command,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            cwd=self._folder,
            start_new_session=sys.platform != "win32",
        ) as self._process:
            assert self._process.stdout is not None
            decoder = getincrementaldecoder("utf-8")("replace")
            async for piece in self._process.stdout:
                self.output = (self.output + decoder.decode(piece))[-MOST_CHARS:]
                self._changed()
            code = await self._process.wait()
        status = "cancelled by the user" if self._cancelled else f"exit code {code}"
        return UserCommand(self.line, self.output, status)

    def cancel(self) -> None:
        """End the command and what it has started."""
        self._cancelled = True
        if self._process is None or self._process.returncode is not None:
            return
        if sys.platform == "win32":
            self._process.terminate()
        else:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGTERM)
