"""A command in a sandbox with a PID namespace of its own.

The process that this server starts is that of the sandbox, which lives as long as any process in it. The first
process in the sandbox reports the exit code of the command through a socket.
"""

from __future__ import annotations

import os
import socket
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import Process

from jumpseat.process_groups import group_members, kill_group, terminate_members
from jumpseat.sandbox.session import SETTLE_S, Confined, SessionSandbox
from jumpseat.sandbox.session_network import Reach
from jumpseat.tools.shell.process import BASH, DRAIN_S, KILL_WAIT_S, Pipes, Shell, non_interactive
from jumpseat.tools.shell.sandbox_report import SandboxReport

REPORT_S: Final = 0.1
"""Longest wait for the exit code of a command that has ended."""


class SandboxedShell(Shell):
    """A command that ``sandbox`` confines; ``status`` is the socket of its exit code, if it has a PID namespace."""

    def __init__(
        self,
        shell_id: str,
        command: str,
        process: Process,
        output_fd: int,
        input_fd: int | None,
        sandbox: SessionSandbox,
        confined: Confined,
        status: socket.socket | None,
    ) -> None:
        super().__init__(shell_id, command, process, output_fd, input_fd)
        self._report = SandboxReport(sandbox, confined)
        self.confined = self._report.confined
        self._status = status
        self._reported: int | None = None

    @property
    def messages(self) -> list[str]:
        return self._report.messages(self)

    @property
    def alive(self) -> bool:
        return super().alive if self._status is None else self._process.returncode is None

    async def supervise(self) -> None:
        try:
            await super().supervise()
        finally:
            if self._status is not None:
                self._status.close()
            with anyio.CancelScope(shield=True), anyio.move_on_after(SETTLE_S):
                await self._report.settle()

    async def _wait_exit(self) -> None:
        if self._status is None:
            await super()._wait_exit()
        else:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._read_code, self._status, tasks.cancel_scope)
                await self._process.wait()
                tasks.cancel_scope.cancel()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._report.settle)
                with anyio.move_on_after(DRAIN_S):
                    # Ends at once, unless the command has left background processes.
                    await self._process.wait()
            return
        await self._report.settle()

    async def _read_code(self, status: socket.socket, done: anyio.CancelScope) -> None:
        await anyio.wait_readable(status)
        text = status.recv(16)
        if text:
            self._reported = int(text)
            done.cancel()

    async def _wait_last(self) -> None:
        if self._status is None:
            await super()._wait_last()
        else:
            await self._process.wait()

    def _code(self) -> int:
        if self._reported is None and self._status is not None and self._process.returncode is not None:
            # The exit code may have come after the end of the last process.
            with suppress(OSError):
                self._reported = int(self._status.recv(16) or str(super()._code()))
        return super()._code() if self._reported is None else self._reported

    async def _end_group(self, grace_s: float) -> None:
        if self._status is None:
            await super()._end_group(grace_s)
            return
        leader = self._process.pid
        terminate_members(leader)
        pause_s = 0.005
        with anyio.move_on_after(grace_s):
            # Polled, because the system notifies only parents.
            while self._members():
                await anyio.sleep(pause_s)
                pause_s = min(2 * pause_s, 0.05)
            with anyio.move_on_after(REPORT_S):
                # The first process reports the exit code, and ends unless processes of other groups are left.
                await self._process.wait()
        if self.alive:
            try:
                kill_group(leader)
            except (ProcessLookupError, PermissionError):
                return
            with anyio.move_on_after(KILL_WAIT_S):
                await self._process.wait()

    def _members(self) -> list[int]:
        """Return the processes in the sandbox, without its first one, which ends with the last of the others."""
        leader = self._process.pid
        if not self.alive:
            return []
        return [process for process, parent in group_members(leader) if leader not in (process, parent)]


async def start_sandboxed(
    shell_id: str,
    command: str,
    cwd: Path,
    environ: dict[str, str],
    sandbox: SessionSandbox,
    reach: Reach,
    *,
    stdin: bool,
) -> Shell:
    """Start ``command``, which was approved for ``reach``, in ``sandbox``.

    Raises:
        OSError: the command cannot be started, or the session requires a sandbox and there is none.
    """
    # The program of the sandbox would report these as failures of the command.
    os.stat(cwd)
    has_processes = await sandbox.has_processes()
    status, inherited = socket.socketpair() if has_processes else (None, None)
    confined = None
    try:
        with Pipes(stdin=stdin) as pipes:
            given = pipes.input_read if stdin else 0
            init = (inherited.fileno(), given) if inherited is not None else None
            words = [*BASH, command]
            confined = await sandbox.confine(words, cwd, non_interactive(environ), init=init, reach=reach)
            process = await pipes.start(
                confined.command,
                cwd,
                confined.environ,
                stdin=pipes.input_read if init is None else subprocess.DEVNULL,
                inherited=() if init is None else tuple(fd for fd in init if fd),
            )
    except BaseException:
        if status is not None:
            status.close()
        if confined is not None:
            sandbox.abandon(confined)
        raise
    finally:
        if inherited is not None:
            inherited.close()
    if status is not None:
        status.setblocking(False)
    return SandboxedShell(
        shell_id, command, process, pipes.output_read, pipes.input_write, sandbox, confined, status
    )
