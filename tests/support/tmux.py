"""A tmux server for one test, driven over its control mode: one process, and no polling of the screen.

https://github.com/tmux/tmux/wiki/Control-Mode describes the protocol: a command is a line, its answer is
between ``%begin`` and ``%end``, and every change in the terminal is announced by a line that begins with ``%``.
"""

from __future__ import annotations

import os
import select
import shlex
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from tests.support.limits import WAIT_S


class Tmux:
    """A control client of one tmux session, whose size it does not change.

    ``command`` is tmux with the options that name the server; ``new_session`` are the arguments of the command that
    starts the session.
    """

    def __init__(
        self, command: Sequence[str], new_session: Sequence[str], env: Mapping[str, str] | None = None
    ) -> None:
        subprocess.run([*command, "new-session", "-d", *new_session], env=env, timeout=WAIT_S, check=True)
        self._client = subprocess.Popen(
            [*command, "-C", "attach", "-f", "ignore-size"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._received = b""
        self._changed = False
        # tmux answers the command that has attached this client, too.
        self._answer(time.monotonic() + WAIT_S)

    def run(self, *command: str) -> str:
        """Run a tmux command and return its output.

        Raises:
            AssertionError: tmux refused the command, or did not answer in time.
        """
        line = shlex.join(command)
        assert "\n" not in line, "a command of the control mode is one line"
        assert self._client.stdin is not None
        self._client.stdin.write(line.encode() + b"\n")
        self._client.stdin.flush()
        return self._answer(time.monotonic() + WAIT_S)

    def until(self, fits: Callable[[], str | None], wait_s: float) -> str | None:
        """Return the first true value of ``fits``, called at once and after every change; ``None`` on time-out."""
        deadline = time.monotonic() + wait_s
        while True:
            self._changed = False
            if found := fits():
                return found
            while not self._changed:
                line = self._line(deadline)
                if line is None:
                    return None
                self._changed = line.startswith(b"%")

    def close(self) -> None:
        """End the server and all programs in it."""
        assert self._client.stdin is not None
        assert self._client.stdout is not None
        # The server has already ended if its last window was closed.
        with suppress(BrokenPipeError):
            self._client.stdin.write(b"kill-server\n")
            self._client.stdin.close()
        self._client.wait(WAIT_S)
        self._client.stdout.close()

    def _answer(self, deadline: float) -> str:
        """Read up to the end of the next answer."""
        output: list[str] = []
        begun: bytes | None = None
        while True:
            line = self._line(deadline)
            assert line is not None, "tmux did not answer"
            words = line.split()
            if begun is not None and words[1:] == begun.split()[1:] and words[0] in (b"%end", b"%error"):
                assert words[0] == b"%end", output
                return "".join(text + "\n" for text in output)
            if begun is not None:
                output.append(line.decode())
            elif words[:1] == [b"%begin"]:
                begun = line
            elif line.startswith(b"%"):
                self._changed = True

    def _line(self, deadline: float) -> bytes | None:
        """Return the next line without its end, or ``None`` if none arrives before the deadline."""
        assert self._client.stdout is not None
        while b"\n" not in self._received:
            readable, _, _ = select.select([self._client.stdout], [], [], max(0.0, deadline - time.monotonic()))
            chunk = os.read(self._client.stdout.fileno(), 1 << 16) if readable else b""
            if not chunk:
                return None
            self._received += chunk
        line, _, self._received = self._received.partition(b"\n")
        return line
