"""A process that has imported the server and forks one for whoever asks: hundreds of tests need not import it each.

Started by :mod:`tests.support.forked` with one end of a socket as its stdin. A message there is ``{"argv", "env",
"cwd"}`` and brings four descriptors: stdin, stdout and stderr of the server, and where to write its pid and, after
its end, its exit code, a line each. What is forked runs the ``jumpseat`` command from its first line on. The
process ends with the socket, and imports nothing else: whatever is here, each server has.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from importlib import import_module
from types import FrameType

_MESSAGE_BYTES = 1 << 16


def main() -> None:
    """Fork a server for each message."""
    # As the console script has it, and without what lies beside this file.
    sys.path[0] = os.path.dirname(sys.executable)
    gc.disable()
    for what_the_command_imports in ("jumpseat.cli", "jumpseat.app"):
        import_module(what_the_command_imports)
    from jumpseat.__main__ import main as jumpseat

    gc.freeze()
    asked = socket.socket(fileno=os.dup(0))
    ended, ends = os.pipe()
    os.set_blocking(ends, False)
    signal.set_wakeup_fd(ends)
    # Only what has a handler wakes us.
    signal.signal(signal.SIGCHLD, _do_nothing)
    told: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([asked, ended], [], [])
        if ended in ready:
            os.read(ended, 4096)
            _reap(told)
            continue
        body, descriptors, _, _ = socket.recv_fds(asked, _MESSAGE_BYTES, 4)
        if not body:
            return
        pid = os.fork()
        if not pid:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            *streams, status = descriptors
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
            for descriptor in (*streams, status, asked.detach(), ended, ends, *told.values()):
                os.close(descriptor)
            _become(**json.loads(body))
            jumpseat()
        *streams, told[pid] = descriptors
        _tell(told[pid], pid)
        for stream in streams:
            os.close(stream)


def _do_nothing(_signal: int, _frame: FrameType | None) -> None:
    """A handler."""


def _become(argv: list[str], env: dict[str, str], cwd: str) -> None:
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv[:] = argv


def _reap(told: dict[int, int]) -> None:
    """Tell the exit codes of those that have ended."""
    while told:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        descriptor = told.pop(pid)
        _tell(descriptor, os.waitstatus_to_exitcode(status))
        os.close(descriptor)


def _tell(descriptor: int, number: int) -> None:
    # A test may be gone before its server.
    with suppress(BrokenPipeError):
        os.write(descriptor, b"%d\n" % number)


if __name__ == "__main__":
    main()
