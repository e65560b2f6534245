"""Processes forked from one that has already imported their program: see :mod:`tests.support.forking`.

The program is imported once per test run, whatever the number of workers: the first that needs it starts
``forking.py``, which ends with the last worker. :func:`fork` is for tests that drive the process themselves;
:func:`executable` is for those that hand a command to somebody else: an SDK, an editor, a shell.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import anyio
import anyio.lowlevel
from anyio.abc import AsyncResource, ByteReceiveStream, ByteSendStream

from tests.support.locks import locked

HERE: Final = Path(__file__).parent

_CHUNK_BYTES: Final = 1 << 16


class _PipeEnd(AsyncResource):
    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor
        os.set_blocking(descriptor, False)

    async def aclose(self) -> None:
        if self._descriptor is not None:
            anyio.notify_closing(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None
        await anyio.lowlevel.checkpoint()


class PipeReader(_PipeEnd, ByteReceiveStream):
    """The read end of a pipe."""

    async def receive(self, max_bytes: int = _CHUNK_BYTES) -> bytes:
        while True:
            await anyio.lowlevel.checkpoint()
            if self._descriptor is None:
                raise anyio.ClosedResourceError
            with suppress(BlockingIOError):
                if data := os.read(self._descriptor, max_bytes):
                    return data
                raise anyio.EndOfStream
            await anyio.wait_readable(self._descriptor)


class PipeWriter(_PipeEnd, ByteSendStream):
    """The write end of a pipe."""

    async def send(self, item: bytes) -> None:
        rest = memoryview(item)
        while rest:
            await anyio.lowlevel.checkpoint()
            if self._descriptor is None:
                raise anyio.ClosedResourceError
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:
                await anyio.wait_writable(self._descriptor)
            except BrokenPipeError as error:
                raise anyio.BrokenResourceError from error


class ForkedProcess:
    """A forked process, with what tests need of ``anyio.abc.Process``. It is not a child of this process."""

    def __init__(
        self, stdin: PipeWriter | None, stdout: PipeReader, stderr: PipeReader | None, connection: PipeReader
    ) -> None:
        self.pid = 0
        self.returncode: int | None = None
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self._connection = connection
        self._turn = anyio.Lock()

    async def wait_until_started(self) -> None:
        """Wait until the process has been forked."""
        self.pid = int(await self._connection.receive())

    async def wait(self) -> int:
        """Wait for the end; returns the exit code, or the negative number of the signal."""
        async with self._turn:
            if self.returncode is None:
                self.returncode = int(await self._connection.receive())
        return self.returncode

    async def aclose(self) -> None:
        """Close the pipes and wait for the end."""
        with anyio.CancelScope(shield=True):
            for stream in (self.stdin, self.stdout, self.stderr):
                if stream is not None:
                    await stream.aclose()
            await self.wait()
            await self._connection.aclose()


@dataclass(frozen=True, slots=True)
class Program:
    """A Python file with a function ``main``, and the interpreter that runs it."""

    file: str
    python: str = sys.executable


INSTALLED: Final = str(Path(sys.executable).with_name("jumpseat"))
"""The installed command, which takes longer to start than :func:`executable`."""
SERVER: Final = Program(str(HERE / "preloaded.py"))


async def fork(
    program: Program,
    argv: Sequence[str],
    environ: Mapping[str, str],
    cwd: Path,
    *,
    stdin: bool = False,
    stderr: int | None = None,
    new_session: bool = False,
) -> ForkedProcess:
    """Run ``main`` of a program with these arguments in a forked process.

    Without ``stdin`` the process reads from the null device. ``stderr`` is an open file descriptor, or ``None`` for
    a pipe. ``new_session`` makes the process the leader of a session and a process group.
    """
    out, their_out = os.pipe()
    err, their_err = os.pipe() if stderr is None else (None, os.dup(stderr))
    their_in, into = os.pipe() if stdin else (os.open(os.devnull, os.O_RDONLY), None)
    theirs = [their_in, their_out, their_err]
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    fields = [str(cwd), test, "1" if new_session else "", "", str(len(argv)), *argv]
    fields += [f"{name}={value}" for name, value in environ.items()]
    connection = _connect(_address(program))
    assert connection is not None, "the forking process has ended"
    socket.send_fds(connection, [os.fsencode("\0".join(fields))], theirs)
    for descriptor in theirs:
        os.close(descriptor)
    process = ForkedProcess(
        None if into is None else PipeWriter(into),
        PipeReader(out),
        None if err is None else PipeReader(err),
        PipeReader(connection.detach()),
    )
    await process.wait_until_started()
    return process


def preload(program: Program) -> None:
    """Import a program for :func:`fork`, unless another worker has done it: that takes seconds."""
    _address(program)


@cache
def executable(program: Program = SERVER, name: str = "jumpseat") -> str:
    """Return the path of an executable that runs a program in a forked process.

    It passes signals on, and its standard streams are those of the process; but the process is in a session of its
    own, has no controlling terminal, and outlives a SIGKILL by a moment. Tests of these, of inherited limits and of
    the start itself run the :data:`INSTALLED` command.
    """
    folder = _commands()
    path = folder / name
    launch = (sys.executable, "-I", "-S", HERE / "launching.py", _address(program), folder, name)
    exec_program = f'exec {shlex.join(map(str, launch))} "$@"\n'
    path.write_text(f"#!/bin/sh\n{exec_program}")
    path.chmod(0o755)
    if program == SERVER:
        # As `sys.executable` of the forked process, for the servers that it starts with it.
        python = folder / "python"
        python.write_text(
            '#!/bin/sh\ncase "$1 $2 $3" in\n'
            f'"-P -m jumpseat") shift 3; {exec_program};;\n"-m jumpseat "*) shift 2; {exec_program};;\nesac\n'
            f'exec {shlex.quote(sys.executable)} "$@"\n'
        )
        python.chmod(0o755)
    return str(path)


def name_test(test: str) -> None:
    """Tell the processes started with :func:`executable` the id of the test that will run."""
    (_commands() / "test").write_text(test)


@cache
def _commands() -> Path:
    """Return the folder of this worker's executables; the folder that all workers share is its parent.

    Both are removed at exit, the shared one by the last worker.
    """
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    # Short: the path of a socket has at most 107 bytes, and a long name with digits looks like a secret.
    shared = Path(tempfile.gettempdir(), f"tests-{run[:8]}")
    shared.mkdir(mode=0o700, exist_ok=True)
    folder = shared / os.environ.get("PYTEST_XDIST_WORKER", "main")
    folder.mkdir(exist_ok=True)
    atexit.register(_remove, folder)
    return folder


def _remove(folder: Path) -> None:
    # Two workers may exit at the same time, and both find that they are the last.
    shutil.rmtree(folder)
    with suppress(FileNotFoundError):
        if not any(path.is_dir() for path in folder.parent.iterdir()):
            shutil.rmtree(folder.parent, ignore_errors=True)


@cache
def _address(program: Program) -> str:
    """Return the socket of the process that forks a program; start the process if it does not run yet."""
    digest = hashlib.sha256(f"{program.python}\0{program.file}".encode()).hexdigest()
    address = str(_commands().parent / digest[:12])
    with locked(Path(f"{address}.lock")):
        connection = _keep_alive(address)
        if connection is None:
            command = [program.python, str(HERE / "forking.py"), program.file, address]
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
            assert process.stdout is not None
            with process.stdout:
                assert process.stdout.readline() == b"ready\n", f"{program.file} cannot be imported"
            # Not waited for: other workers may need it for longer.
            atexit.register(process.poll)
            connection = _keep_alive(address)
    assert connection is not None
    atexit.register(connection.close)
    return address


def _keep_alive(address: str) -> socket.socket | None:
    """Open a connection that keeps the forking process alive; returns ``None`` if no process listens."""
    connection = _connect(address)
    if connection is not None:
        with suppress(OSError):
            connection.send(b"keep")
            if connection.recv(16):
                return connection
        connection.close()
    return None


def _connect(address: str) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        connection.connect(address)
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    return connection
