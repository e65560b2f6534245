"""Import the server once and fork a process per request, so that a thousand tests do not import it each.

:mod:`tests.support.forked` starts this program with one end of a socket as its stdin. A message on the socket is
``{"argv", "env", "cwd", "test"}`` with four file descriptors: stdin, stdout and stderr of the server, and a pipe
for its pid and, after its end, its exit code, one line each. The forked process runs the ``jumpseat`` command from
its first line on. The program ends with the socket.

Modules that the server imports late are imported here too, and pydantic's validators are built: each forked server
would otherwise repeat that work, which takes longer than most tests. Tests about late imports start the executable.
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
from pkgutil import walk_packages
from types import FrameType, ModuleType
from typing import cast

from pydantic import BaseModel

_MESSAGE_BYTES = 1 << 16


def main() -> None:
    """Fork a server for each message."""
    # As the console script has it, and without what lies beside this file.
    sys.path[0] = os.path.dirname(sys.executable)
    gc.disable()
    _import_all()
    _build_models()
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


def _import_all() -> None:
    """Import every module of the server and the packages behind them."""
    # As `jumpseat.__main__` does: without its command, httpx is half as large.
    cast("dict[str, ModuleType | None]", sys.modules)["httpx._main"] = None
    import_module("jumpseat.app")
    from jumpseat.mcp.loading import spare_server_side

    spare_server_side()
    for package in ("jumpseat", "jumpseat_protocol"):
        for module in walk_packages(import_module(package).__path__, f"{package}."):
            # A script and a pytest plugin; importing either does something.
            if module.name not in ("jumpseat.__main__", "jumpseat.testing"):
                import_module(module.name)


def _build_models() -> None:
    """Build the validators that pydantic would build at the first use of each model."""
    pending: list[type[BaseModel]] = [BaseModel]
    while pending:
        for model in pending.pop().__subclasses__():
            pending.append(model)
            if not model.__pydantic_complete__:
                # Generic models and those of other packages may name types that nobody has imported.
                model.model_rebuild(raise_errors=False)


def _do_nothing(_signal: int, _frame: FrameType | None) -> None:
    """A handler."""


def _become(argv: list[str], env: dict[str, str], cwd: str, test: str) -> None:
    os.chdir(cwd)
    if (measuring := sys.modules.get("coverage")) is not None and (current := measuring.Coverage.current()):
        # As pytest-cov names what the test itself runs.
        current.switch_context(f"{test}|run")
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
