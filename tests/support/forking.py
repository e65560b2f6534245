"""Import a program once and fork a process per request, so that not every test has to import it.

``python forking.py PROGRAM`` is started by :mod:`tests.support.forked` with one end of a socket as its stdin.
PROGRAM is a Python file; whatever it imports at its top is shared by all processes, and each calls its ``main``.
A message on the socket is the JSON object ``{"argv", "env", "cwd", "test", "new_session"}`` with four file
descriptors: stdin, stdout and stderr of the process, and a pipe for its pid and, after its end, its exit code, one
line each. This process ends when the socket is closed. Only the standard library is imported here, because PROGRAM
may run in the virtual environment of another package.
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
from importlib.util import module_from_spec, spec_from_file_location
from types import FrameType, ModuleType

_MESSAGE_BYTES = 1 << 16


def main() -> None:
    """Fork a process for each message."""
    gc.disable()
    program = _loaded(sys.argv[1])
    gc.freeze()
    asked = socket.socket(fileno=os.dup(0))
    ended, ends = os.pipe()
    os.set_blocking(ends, False)
    signal.set_wakeup_fd(ends)
    # Python writes a signal to the descriptor only if the signal has a handler.
    signal.signal(signal.SIGCHLD, _ignore)
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
            gc.enable()
            sys.exit(program.main())
        *streams, told[pid] = descriptors
        _tell(told[pid], pid)
        for stream in streams:
            os.close(stream)


def _loaded(path: str) -> ModuleType:
    """Import a file under a name other than ``__main__``."""
    # The program must not import the modules beside this file.
    sys.path[0] = os.path.dirname(sys.executable)
    spec = spec_from_file_location("preloaded_program", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _ignore(_signal: int, _frame: FrameType | None) -> None:
    """Handle a signal by doing nothing."""


def _become(argv: list[str], env: dict[str, str], cwd: str, test: str, new_session: bool) -> None:
    if new_session:
        os.setsid()
    os.chdir(cwd)
    if (measuring := sys.modules.get("coverage")) is not None and (current := measuring.Coverage.current()):
        # The name of the context that pytest-cov uses for the code of the test itself.
        current.switch_context(f"{test}|run")
    os.environ.clear()
    os.environ.update(env)
    sys.argv[:] = argv


def _reap(told: dict[int, int]) -> None:
    """Report the exit codes of the processes that have ended."""
    while told:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        descriptor = told.pop(pid)
        _tell(descriptor, os.waitstatus_to_exitcode(status))
        os.close(descriptor)


def _tell(descriptor: int, number: int) -> None:
    # A test may end before its process.
    with suppress(BrokenPipeError):
        os.write(descriptor, b"%d\n" % number)


if __name__ == "__main__":
    main()
