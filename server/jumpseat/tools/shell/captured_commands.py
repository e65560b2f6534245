"""Run commands with separate output streams and a time-out: those of declared tools and of hooks.

A command leads its own process group, which is ended when the command exits, when it times out and when the call is
cancelled.
"""

from __future__ import annotations

import errno
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import Process
from msgspec import Struct
from msgspec.structs import replace

from jumpseat.sandbox.session import Confined, SessionSandbox, StillConfinedError
from jumpseat.sandbox.session_network import Reach
from jumpseat.system.process_groups import kill_group, terminate_group, terminate_members
from jumpseat.tools.shell.process import DRAIN_S, GRACE_S, KILL_WAIT_S, OutputBuffer, group_runs, shortened
from jumpseat.tools.shell.sandbox_needs import Placement

PARTIAL_INTERVAL_S: Final = 0.1

PARTIAL_LIMIT_BYTES: Final = 64 * 1024
"""Each partial output repeats the whole text: a command that writes much must not flood the connection."""

TIMED_OUT: Final = 124
"""The exit code of a command that timed out, as in coreutils ``timeout``."""

_ANSI: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


class CommandResult(Struct, frozen=True):
    """The result of a command. Escape sequences are removed from the streams.

    ``sandboxed`` is whether it was confined, ``None`` if the sandbox is off; ``refusals`` are those of the sandbox.
    """

    exit_code: int
    stdout: str
    stderr: str
    duration_s: float
    timed_out: bool = False
    sandboxed: bool | None = None
    refusals: Sequence[str] = ()


class Commands:
    """The running commands of one session."""

    def __init__(self, sandbox: SessionSandbox | None = None) -> None:
        """``sandbox`` confines the commands."""
        self._sandbox = sandbox
        self._running: dict[Process, Confined | None] = {}
        self._grace_s = GRACE_S

    async def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        environ: Mapping[str, str],
        stdin: str | None,
        timeout_s: float,
        show: Callable[[str], None],
        placement: Placement | None = None,
        temporary: Sequence[Path] | None = None,
        shown: Sequence[Path] = (),
        call_id: str | None = None,
    ) -> CommandResult:
        """Run a program with arguments. ``show`` is called with all output so far while it runs.

        ``placement`` is where an approved command runs; without one, it is confined.
        :meth:`SessionSandbox.confined` explains ``temporary`` and ``shown``.

        Raises:
            OSError: the program or directory is missing, or the system refuses another process.
            ValueError: the command or the environment contains a NUL character.
        """
        placement = placement or Placement()
        if self._sandbox is None or self._sandbox.mode == "off":
            return await self._run(list(argv), cwd, environ, stdin, timeout_s, show)
        # The program of the sandbox would report these as failures of the command.
        os.stat(cwd)
        if shutil.which(argv[0], path=environ.get("PATH")) is None and "/" not in argv[0]:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), argv[0])
        if placement.leaves is not None:
            if self._sandbox.has_running:
                raise StillConfinedError
            await self._sandbox.finish()
            ended = await self._run(list(argv), cwd, environ, stdin, timeout_s, show)
            return replace(ended, sandboxed=False)
        reach = Reach(placement.approved, tuple(placement.hosts), shlex.join(argv), call_id)
        # Not tried again if a file vanishes meanwhile: the report of the sandbox could be one of the command.
        async with self._sandbox.confined(argv, cwd, environ, reach, temporary, shown, vanishing=True) as confined:
            words, variables = confined.command, confined.environ
            ended = await self._run(words, cwd, variables, stdin, timeout_s, show, confined)
        output = f"{ended.stdout}\n{ended.stderr}" if ended.exit_code else ""
        refusals = self._sandbox.refusals(confined, output)
        return replace(ended, sandboxed=confined.mechanism is not None, refusals=refusals)

    async def _run(
        self,
        argv: list[str],
        cwd: Path,
        environ: Mapping[str, str],
        stdin: str | None,
        timeout_s: float,
        show: Callable[[str], None],
        confined: Confined | None = None,
    ) -> CommandResult:
        started = time.monotonic()
        streams = _Streams()
        process = await streams.start(argv, cwd, environ, stdin=stdin is not None)
        self._running[process] = confined
        timed_out = False
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(streams.read)
                tasks.start_soon(streams.show, show)
                if stdin is not None:
                    tasks.start_soon(streams.write, stdin.encode())
                with anyio.move_on_after(timeout_s) as scope:
                    await process.wait()
                timed_out = scope.cancelled_caught
                await self._end(process)
                # A child that has left the group may hold the pipes open for ever.
                with anyio.move_on_after(DRAIN_S):
                    await streams.ended.wait()
                tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await self._end(process)
            del self._running[process]
            streams.close()
        code = process.returncode
        # As shells report signals; a process that survived SIGKILL counts as killed.
        exit_code = TIMED_OUT if timed_out else 137 if code is None else 128 - code if code < 0 else code
        stdout, stderr = streams.texts()
        return CommandResult(exit_code, stdout, stderr, time.monotonic() - started, timed_out)

    async def close(self, grace_s: float) -> None:
        """End all running commands. Not cancellable, but bounded."""
        self._grace_s = grace_s
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as tasks:
                for process in tuple(self._running):
                    tasks.start_soon(self._end, process)
            if self._sandbox is not None:
                await self._sandbox.close()

    async def _end(self, process: Process) -> None:
        """End the process group of a command with SIGTERM, then SIGKILL. Bounded."""
        confined = self._running.get(process)
        terminate = terminate_members if confined is not None and confined.has_processes else terminate_group
        for send, timeout_s in ((terminate, self._grace_s), (kill_group, KILL_WAIT_S)):
            if not _runs(process):
                return
            try:
                send(process.pid)
            except (ProcessLookupError, PermissionError):
                # The group has ended, or belongs to another user (sudo).
                return
            pause_s = 0.005
            with anyio.move_on_after(timeout_s):
                # Polled, because the system notifies only parents.
                while _runs(process):
                    await anyio.sleep(pause_s)
                    pause_s = min(2 * pause_s, 0.05)


def _runs(process: Process) -> bool:
    return process.returncode is None or group_runs(process.pid)


class _Streams:
    """The pipes of one command.

    They are not those of the event loop, whose transports wait for background children that inherited them.
    """

    def __init__(self) -> None:
        self.ended = anyio.Event()
        self._out, self._err = OutputBuffer(), OutputBuffer()
        self._buffers: dict[int, OutputBuffer] = {}
        self._open: set[int] = set()
        self._stdin: int | None = None

    async def start(self, argv: list[str], cwd: Path, environ: Mapping[str, str], *, stdin: bool) -> Process:
        if sys.platform == "win32":
            raise OSError("commands with separate output streams are not available on Windows")
        pipes: list[int] = []
        try:
            for _ in range(3 if stdin else 2):
                pipes += os.pipe()
            out_read, out_write, err_read, err_write = pipes[:4]
            input_read = pipes[4] if stdin else subprocess.DEVNULL
            started: list[Process] = []
            # Cancellation between fork and return would lose the process.
            with shortened(argv) as (line, files), anyio.CancelScope(shield=True):
                started.append(
                    await anyio.open_process(
                        line,
                        stdin=input_read,
                        stdout=out_write,
                        stderr=err_write,
                        cwd=cwd,
                        env=dict(environ),
                        start_new_session=True,
                        pass_fds=files,
                    )
                )
        except BaseException:
            for fd in pipes:
                os.close(fd)
            raise
        for fd in (out_write, err_write, *pipes[4:5]):
            os.close(fd)
        self._buffers = {out_read: self._out, err_read: self._err}
        self._open = {out_read, err_read, *pipes[5:]}
        self._stdin = pipes[5] if stdin else None
        for fd in self._open:
            os.set_blocking(fd, False)
        return started[0]

    async def read(self) -> None:
        async with anyio.create_task_group() as tasks:
            for fd, buffer in self._buffers.items():
                tasks.start_soon(self._pump, fd, buffer)
        self.ended.set()

    async def _pump(self, fd: int, buffer: OutputBuffer) -> None:
        while True:
            await anyio.wait_readable(fd)
            try:
                data = os.read(fd, 65536)
            except BlockingIOError:
                continue
            if not data:
                return
            buffer.append(data)

    async def show(self, show: Callable[[str], None]) -> None:
        shown = 0
        while True:
            await anyio.sleep(PARTIAL_INTERVAL_S)
            if (total := self._out.total + self._err.total) != shown:
                shown = total
                show("\n".join(filter(None, self.texts(PARTIAL_LIMIT_BYTES))))

    async def write(self, data: bytes) -> None:
        assert self._stdin is not None
        rest = memoryview(data)
        # A command may exit or close its input before it has read everything.
        with suppress(OSError):
            while rest:
                try:
                    rest = rest[os.write(self._stdin, rest) :]
                except BlockingIOError:
                    await anyio.wait_writable(self._stdin)
        self._open.discard(self._stdin)
        os.close(self._stdin)

    def texts(self, limit: int | None = None) -> tuple[str, str]:
        out, err = (_ANSI.sub("", stream.text(limit, final=True)).rstrip() for stream in (self._out, self._err))
        return out, err

    def close(self) -> None:
        for fd in self._open:
            os.close(fd)
        self._open.clear()
