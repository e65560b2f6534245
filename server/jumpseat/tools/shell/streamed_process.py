"""A command of the user whose output is passed on while it runs, each stream by itself."""

from __future__ import annotations

import codecs
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import Process

from jumpseat.agent.interfaces import ProcessListener, Stream
from jumpseat.agent.secrets import MaskedStream, Secrets
from jumpseat.system.process_groups import kill_group, terminate_group
from jumpseat.tools.files import describe
from jumpseat.tools.shell.process import DRAIN_S, GRACE_S, KILL_WAIT_S, bash_outside, group_runs
from jumpseat.tools.shell.shells import Shells

STREAMS: Final[tuple[Stream, ...]] = ("stdout", "stderr")

PIECE_BYTES: Final = 64 * 1024
"""Size of the largest piece of output."""


class StreamedProcess:
    """A command whose output is passed on while it runs."""

    def __init__(self, secrets: Secrets, listener: ProcessListener) -> None:
        self.id = str(uuid.uuid4())
        self.ended = anyio.Event()
        self._listener = listener
        self._masked = {name: MaskedStream(secrets) for name in STREAMS}
        self._decoders = {name: codecs.getincrementaldecoder("utf-8")("replace") for name in STREAMS}
        self._process: Process | None = None
        self._scope = anyio.CancelScope()
        self._grace_s = GRACE_S

    def send(self, name: str) -> bool:
        """Send a signal to the process group; a command that has not started, or is confined, ends at once."""
        if self.ended.is_set():
            return False
        if self._process is None:
            self._scope.cancel()
            return True
        return self._process.returncode is None and _signal(self._process, name)

    def stop(self, grace_s: float) -> None:
        """Begin to end the command and the processes of its group."""
        self._grace_s = grace_s
        self._scope.cancel()

    async def supervise(self, run: Callable[[], Awaitable[int]], timeout_s: float | None) -> None:
        """Run the command to its end, and report the end."""
        code = 1
        try:
            with self._scope, anyio.move_on_after(timeout_s):
                code = await run()
        except OSError as error:
            self._listener.output("stderr", f"{describe(error)}\n")
        except ValueError:
            self._listener.output("stderr", "the command contains a NUL character\n")
        except anyio.ClosedResourceError:
            self._listener.output("stderr", "the session is closing\n")
        finally:
            self.ended.set()
            self._listener.exited(code)

    async def run(self, command: str, cwd: Path, environ: dict[str, str]) -> int:
        """Run a command without a sandbox; return its exit code.

        Raises:
            OSError: the command cannot be started.
            ValueError: the command contains a NUL character.
        """
        if sys.platform == "win32":
            raise OSError("shell commands are not available on Windows")
        pipes = [os.pipe() for _ in STREAMS]
        try:
            process = await self._start(command, cwd, environ, pipes[0][1], pipes[1][1])
        except BaseException:
            for read, _ in pipes:
                os.close(read)
            raise
        finally:
            for _, write in pipes:
                os.close(write)
        try:
            async with anyio.create_task_group() as tasks, anyio.create_task_group() as pumps:
                for name, (read, _) in zip(STREAMS, pipes, strict=True):
                    os.set_blocking(read, False)
                    pumps.start_soon(self._pump, name, read)
                tasks.start_soon(self._end_after, process, pumps.cancel_scope)
        finally:
            with anyio.CancelScope(shield=True):
                await _end_group(process, self._grace_s)
            for read, _ in pipes:
                os.close(read)
            self._flush()
        return 1 if process.returncode is None or process.returncode < 0 else process.returncode

    async def _start(self, command: str, cwd: Path, environ: dict[str, str], stdout: int, stderr: int) -> Process:
        # Cancellation between fork and assignment would lose the process.
        with anyio.CancelScope(shield=True):
            self._process = await anyio.open_process(
                bash_outside(command, environ, [cwd]),
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                cwd=cwd,
                env=environ,
                start_new_session=True,
            )
        assert self._process is not None
        return self._process

    async def run_confined(self, shells: Shells, command: str, cwd: Path, environ: dict[str, str]) -> int:
        """Run a command in the sandbox of ``shells``; its stderr is part of its stdout.

        Raises:
            OSError: the command cannot be started.
            ValueError: the command contains a NUL character.
            anyio.ClosedResourceError: the session is closing.
        """
        shell = await shells.start(command, cwd=cwd, environ=environ)
        try:
            while not shell.finished:
                seen = shell.output_bytes
                await self._pass_on("stdout", shell.unread())
                await shell.news(seen)
        finally:
            await shell.stop(self._grace_s)
            self._listener.output("stdout", self._masked["stdout"].feed(shell.unread()))
            self._flush()
            shells.release(shell)
        return 1 if shell.exit_code is None or shell.exit_code > 128 else shell.exit_code

    async def _pump(self, name: Stream, read: int) -> None:
        while True:
            await anyio.wait_readable(read)
            try:
                data = os.read(read, PIECE_BYTES)
            except BlockingIOError:
                continue
            if not data:
                return
            await self._pass_on(name, self._decoders[name].decode(data))

    async def _pass_on(self, name: Stream, text: str) -> None:
        """Pass output on; a client that reads slowly slows the command down."""
        if shown := self._masked[name].feed(text):
            self._listener.output(name, shown)
            await self._listener.drain()

    def _flush(self) -> None:
        for name in STREAMS:
            if (
                shown := self._masked[name].feed(self._decoders[name].decode(b"", True))
                + self._masked[name].flush()
            ):
                self._listener.output(name, shown)

    async def _end_after(self, process: Process, pumps: anyio.CancelScope) -> None:
        """Cancel the reading soon after the exit: a process in the background may hold the pipes open."""
        await process.wait()
        await anyio.sleep(DRAIN_S)
        pumps.cancel()


def _signal(process: Process, name: str) -> bool:
    try:
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.Signals[name])
    except (ProcessLookupError, PermissionError):
        return False
    return True


async def _end_group(process: Process, grace_s: float) -> None:
    """End the processes of the group that are left, with SIGTERM, then SIGKILL."""
    for end, timeout_s in ((terminate_group, grace_s), (kill_group, KILL_WAIT_S)):
        if process.returncode is not None and not group_runs(process.pid):
            return
        with suppress(ProcessLookupError, PermissionError):
            end(process.pid)
        with anyio.move_on_after(timeout_s):
            await process.wait()
            while group_runs(process.pid):  # noqa: ASYNC110 (the system notifies only parents)
                await anyio.sleep(0.01)
