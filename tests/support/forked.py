"""Processes forked from one that has already imported their program: see :mod:`tests.support.forking`."""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import anyio
import anyio.lowlevel
from anyio.abc import AsyncResource, ByteReceiveStream, ByteSendStream

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
        self, stdin: PipeWriter | None, stdout: PipeReader, stderr: PipeReader | None, status: PipeReader
    ) -> None:
        self.pid = 0
        self.returncode: int | None = None
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self._status = status
        self._told = b""
        self._turn = anyio.Lock()

    async def begun(self) -> None:
        """Wait until the process has been forked."""
        self.pid = await self._number()

    async def wait(self) -> int:
        """Wait for the end; returns the exit code, or the negative number of the signal."""
        async with self._turn:
            if self.returncode is None:
                self.returncode = await self._number()
        return self.returncode

    async def aclose(self) -> None:
        """Close the pipes and wait for the end."""
        with anyio.CancelScope(shield=True):
            for stream in (self.stdin, self.stdout, self.stderr):
                if stream is not None:
                    await stream.aclose()
            await self.wait()
            await self._status.aclose()

    async def _number(self) -> int:
        while b"\n" not in self._told:
            self._told += await self._status.receive()
        line, _, self._told = self._told.partition(b"\n")
        return int(line)


@dataclass(frozen=True, slots=True)
class Program:
    """A Python file with a function ``main``, and the interpreter that runs it."""

    file: str
    python: str = sys.executable


SERVER: Final = Program(str(Path(__file__).with_name("preloaded.py")))


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
    (out, their_out), (status, their_status) = os.pipe(), os.pipe()
    err, their_err = os.pipe() if stderr is None else (None, os.dup(stderr))
    their_in, into = os.pipe() if stdin else (os.open(os.devnull, os.O_RDONLY), None)
    theirs = [their_in, their_out, their_err, their_status]
    message = {
        "argv": list(argv),
        "env": dict(environ),
        "cwd": str(cwd),
        "test": os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0],
        "new_session": new_session,
    }
    socket.send_fds(_preloaded(program), [json.dumps(message).encode()], theirs)
    for descriptor in theirs:
        os.close(descriptor)
    process = ForkedProcess(
        None if into is None else PipeWriter(into),
        PipeReader(out),
        None if err is None else PipeReader(err),
        PipeReader(status),
    )
    await process.begun()
    return process


@cache
def _preloaded(program: Program) -> socket.socket:
    """Start the process that a program's processes are forked from; it ends when its socket is closed."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [program.python, str(Path(__file__).with_name("forking.py")), program.file]
    with theirs:
        process = subprocess.Popen(command, stdin=theirs.fileno(), stdout=subprocess.DEVNULL)
    atexit.register(_end, process, ours)
    return ours


def _end(process: subprocess.Popen[bytes], ours: socket.socket) -> None:
    ours.close()
    process.wait()
