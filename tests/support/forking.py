"""Import a program once and fork a process per request, so that not every test has to import it.

``python forking.py PROGRAM SOCKET`` is started by :mod:`tests.support.forked` and prints a line when it is ready.
PROGRAM is a Python file; whatever it imports at its top is shared by all processes, and each calls its ``main``.
Only the standard library is imported here, because PROGRAM may run in the virtual environment of another package.

Each connection to SOCKET (Unix, ``SOCK_SEQPACKET``) is for one process, or keeps this program alive:

- ``keep`` is answered with ``kept``; this program ends when its last connection is closed.
- A request has three file descriptors (stdin, stdout and stderr of the process) and these fields, separated by
  NUL: the working directory, the id of the running test, ``1`` for a new session, the path for ``sys.executable``
  (empty: unchanged), the number of arguments, the arguments, and the environment as ``NAME=value``. The answers are
  the pid and, after the end of the process, its exit code. Further messages are signal numbers for the process,
  which is killed if the connection is closed before its end.
"""

from __future__ import annotations

import ctypes
import gc
import os
import selectors
import signal
import socket
import sys
from contextlib import suppress
from importlib.util import module_from_spec, spec_from_file_location
from types import FrameType, ModuleType
from typing import NoReturn

MESSAGE_BYTES = 1 << 18
HUGE_PAGE_BYTES = 1 << 21
MADV_COLLAPSE = 25


def main() -> None:
    """Serve requests until the last connection is closed."""
    file, address = sys.argv[1:]
    gc.disable()
    program = _load(file)
    gc.freeze()
    _use_huge_pages()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(address)
        listener.listen(64)
        print("ready", flush=True)
        _Forker(program, listener).serve()


class _Forker:
    """The connections, and the processes that belong to them."""

    def __init__(self, program: ModuleType, listener: socket.socket) -> None:
        self._program = program
        self._listener = listener
        self._connections: dict[socket.socket, int | None] = {}
        """The pid of the running process of each connection."""
        self._ended, self._ends = os.pipe()
        os.set_blocking(self._ends, False)
        signal.set_wakeup_fd(self._ends)
        # Python writes a signal to the descriptor only if the signal has a handler.
        signal.signal(signal.SIGCHLD, _ignore)

    def serve(self) -> None:
        """Handle messages until the last connection is closed."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.register(self._ended, selectors.EVENT_READ)
            begun = False
            while self._connections or not begun:
                for key, _ in selector.select():
                    if key.fileobj is self._listener:
                        connection, _ = self._listener.accept()
                        self._connections[connection] = None
                        selector.register(connection, selectors.EVENT_READ)
                        begun = True
                    elif key.fileobj == self._ended:
                        os.read(self._ended, 4096)
                        self._reap()
                    elif isinstance(key.fileobj, socket.socket) and not self._handle(key.fileobj, selector):
                        selector.unregister(key.fileobj)
                        self._close(key.fileobj)

    def _handle(self, connection: socket.socket, selector: selectors.BaseSelector) -> bool:
        """Handle one message; returns whether there was one."""
        try:
            body, descriptors, _, _ = socket.recv_fds(connection, MESSAGE_BYTES, 3)
        except ConnectionResetError:
            return False
        if not body:
            return False
        if body == b"keep":
            connection.send(b"kept")
        elif descriptors:
            pid = os.fork()
            if not pid:
                selector.close()
                self._run(body, descriptors)
            for descriptor in descriptors:
                os.close(descriptor)
            self._connections[connection] = pid
            _send_number(connection, pid)
        elif (pid := self._connections[connection]) is not None:
            os.kill(pid, int(body))
        return True

    def _run(self, body: bytes, descriptors: list[int]) -> NoReturn:
        """Become the requested process."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
        for descriptor in (*descriptors, self._ended, self._ends, self._listener.detach()):
            os.close(descriptor)
        for connection in self._connections:
            connection.close()
        _become(body)
        gc.enable()
        sys.exit(self._program.main())

    def _reap(self) -> None:
        """Report the exit codes of the processes that have ended."""
        owners = {pid: connection for connection, pid in self._connections.items() if pid is not None}
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    break
                if (connection := owners.get(pid)) is not None:
                    self._connections[connection] = None
                    _send_number(connection, os.waitstatus_to_exitcode(status))

    def _close(self, connection: socket.socket) -> None:
        """Close a connection, and kill its process."""
        if (pid := self._connections.pop(connection)) is not None:
            os.kill(pid, signal.SIGKILL)
        connection.close()


def _load(path: str) -> ModuleType:
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


def _use_huge_pages() -> None:
    """Put this process's memory into huge pages, if Linux can (6.1 or newer).

    A fork copies a table of all pages, which takes a quarter of the time of a test's server with small pages.
    """
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    with open("/proc/self/maps") as file:
        mappings = [line.split() for line in file]
    for place, access, _offset, _device, inode, *_name in mappings:
        # Not memory of files.
        if access == "rw-p" and inode == "0":
            first, end = (int(address, 16) for address in place.split("-"))
            first += -first % HUGE_PAGE_BYTES
            if first + HUGE_PAGE_BYTES <= end:
                # A failure changes nothing.
                advise(first, (end - first) // HUGE_PAGE_BYTES * HUGE_PAGE_BYTES, MADV_COLLAPSE)


def _ignore(_signal: int, _frame: FrameType | None) -> None:
    """Handle a signal by doing nothing."""


def _become(body: bytes) -> None:
    """Take over the working directory, the arguments and the environment in a request."""
    cwd, test, new_session, executable, count, *rest = (os.fsdecode(field) for field in body.split(b"\0"))
    if new_session:
        os.setsid()
    os.chdir(cwd)
    if (measuring := sys.modules.get("coverage")) is not None and (current := measuring.Coverage.current()):
        # The name of the context that pytest-cov uses for the code of the test itself.
        current.switch_context(f"{test}|run")
    os.environ.clear()
    for name, _, value in (item.partition("=") for item in rest[int(count) :]):
        os.environ[name] = value
    sys.argv[:] = rest[: int(count)]
    sys.executable = executable or sys.executable


def _send_number(connection: socket.socket, number: int) -> None:
    # A test may end before its process.
    with suppress(OSError):
        connection.send(b"%d" % number)


if __name__ == "__main__":
    main()
