"""A command in a sandbox, possibly in its own PID namespace.

The server starts the process of the sandbox, which leads a process group and ends with the command. The first
process in the namespace belongs to the group, too, and lives as long as any other process in the namespace, so that
killing the group kills all of them.
"""

from __future__ import annotations

import os
import subprocess
from functools import partial
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import Process

from jumpseat.sandbox.session import SETTLE_S, Confined, SessionSandbox
from jumpseat.sandbox.session_network import Reach
from jumpseat.system.process_groups import group_members, kill_group, terminate_members
from jumpseat.tools.shell.process import BASH, GRACE_S, KILL_WAIT_S, Pipes, Shell, has_no_writer, non_interactive
from jumpseat.tools.shell.ready_sandbox import START_S, ReadySandbox, end_sandbox
from jumpseat.tools.shell.sandbox_report import SandboxReport

ATTEMPTS: Final = 4
"""How often a sandbox is made, if files vanish that it should hide or protect."""

EXIT_S: Final = 0.1
"""Time limit for the exit of the sandbox after all processes in it have ended."""


class SandboxedShell(Shell):
    """A command that ``sandbox`` confines. After its end, ``ready`` prepares the sandbox of the next command."""

    def __init__(
        self,
        shell_id: str,
        command: str,
        process: Process,
        output_fd: int,
        input_fd: int | None,
        sandbox: SessionSandbox,
        confined: Confined,
        ready: ReadySandbox,
    ) -> None:
        super().__init__(shell_id, command, process, output_fd, input_fd)
        self._report = SandboxReport(sandbox, confined)
        self._prepare = partial(ready.prepare, confined)
        self._stopped = False
        self._settled = False
        self._has_processes = confined.has_processes
        self.confined = self._report.confined

    @property
    def messages(self) -> list[str]:
        return self._report.messages(self)

    @property
    def alive(self) -> bool:
        # The first process of a namespace has the output open as long as any other process in it lives.
        return not (self._has_processes and self._eof.is_set()) and super().alive

    @property
    def holds_processes(self) -> bool:
        return self._has_processes

    async def supervise(self) -> None:
        try:
            await super().supervise()
        finally:
            if not self._settled:
                with anyio.CancelScope(shield=True), anyio.move_on_after(SETTLE_S):
                    await self._report.settle()

    async def _wait_exit(self) -> None:
        await super()._wait_exit()
        # Children in the background may live on: until they have ended, nothing leaves the sandbox.
        ended = self._has_ended()
        await self._report.settle(ended=ended)
        self._settled = ended

    def _has_ended(self) -> bool:
        """Return whether no process of the command is left, as the end of its output shows."""
        # A sandbox that was killed may leave some for a moment.
        code = self._process.returncode
        return self._has_processes and code is not None and code >= 0 and has_no_writer(self._output_fd)

    async def stop(self, grace_s: float = GRACE_S) -> None:
        # Whoever stops a command expects that nothing is left of it, not the beginning of another one.
        self._stopped = True
        await super().stop(grace_s)

    def _finish(self) -> None:
        if not self.finished:
            if not self.alive:
                self._report.end()
            super()._finish()
            # After the notification, because the start of a process blocks the event loop.
            if not self._stopped:
                self._prepare()

    async def _end_group(self, grace_s: float) -> None:
        if not self._has_processes:
            await super()._end_group(grace_s)
            return
        if not self.alive:
            return
        leader = self._process.pid
        terminate_members(leader)
        pause_s = 0.005
        with anyio.move_on_after(grace_s):
            # Polled, because the system notifies only parents.
            while self._has_members():
                await anyio.sleep(pause_s)
                pause_s = min(2 * pause_s, 0.05)
            with anyio.move_on_after(EXIT_S):
                await self._process.wait()
        if self.alive:
            try:
                kill_group(leader)
            except (ProcessLookupError, PermissionError):
                return
            with anyio.move_on_after(KILL_WAIT_S):
                await self._group_end(0.005, 0.05)

    def _has_members(self) -> bool:
        """Return whether the group has a process besides that of the sandbox and the first one of the namespace."""
        leader = self._process.pid
        return sum(process != leader for process, _ in group_members(leader)) > 1


async def start_sandboxed(
    shell_id: str,
    command: str,
    cwd: Path,
    environ: dict[str, str],
    sandbox: SessionSandbox,
    ready: ReadySandbox,
    reach: Reach,
    *,
    stdin: bool,
) -> Shell:
    """Start ``command`` in ``sandbox``, with the hosts of ``reach``; in the sandbox that is ``ready``, if it fits.

    Raises:
        OSError: the command cannot be started, or the session requires a sandbox and there is none.
        ValueError: the command or the environment contains a NUL character.
    """
    # The program of the sandbox would report a missing folder as a failure of the command.
    os.stat(cwd)
    variables = non_interactive(environ)
    for attempt in range(ATTEMPTS):
        vanishing, waits = attempt > 0, attempt < ATTEMPTS - 1
        confined = await sandbox.confine(
            [*BASH, command], cwd, variables, outlives=True, reach=reach, vanishing=vanishing
        )
        try:
            taken = None if stdin else await ready.take(confined, command)
            process, output, input_ = (
                (*taken, None) if taken else await _start(confined, command, stdin=stdin, waits=waits)
            )
        except BaseException as error:
            sandbox.abandon(confined)
            if isinstance(error, _NotBegunError):
                continue
            raise
        return SandboxedShell(shell_id, command, process, output, input_, sandbox, confined, ready)
    raise AssertionError("the last attempt does not wait")


class _NotBegunError(Exception):
    """The sandbox has ended before bash began: something that it hides or protects is gone."""


async def _start(confined: Confined, command: str, *, stdin: bool, waits: bool) -> tuple[Process, int, int | None]:
    """Start a command in a sandbox of its own; return its process, its output and its input.

    Raises:
        _NotBegunError: the sandbox could not be made. Raised only with ``waits``, and without any effect.
    """
    begun, begun_write = os.pipe()
    ends = {begun, begun_write}
    try:
        with Pipes(stdin=stdin) as pipes:
            first, inherited = list[str](), list[int]()
            if confined.has_processes and waits:
                first += [f"printf . >&{begun_write}", f"exec {begun_write}>&-"]
                inherited.append(begun_write)
            if confined.has_processes and stdin:
                # The processes of the sandbox keep their standard input open after the command has closed its own.
                first.append(f"exec <&{pipes.input_read} {pipes.input_read}<&-")
                inherited.append(pipes.input_read)
            words = [*BASH, command]
            if first:
                # By a bash of its own, because it leaves traces, such as PIPESTATUS.
                words = [*BASH, " && ".join((*first, 'exec "$@"')), "bash", *words]
            process = await pipes.start(
                [*confined.enter, *words],
                confined.cwd,
                confined.environ,
                stdin=subprocess.DEVNULL if pipes.input_read in inherited else pipes.input_read,
                inherited=tuple(inherited),
            )
            os.close(begun_write)
            ends.discard(begun_write)
            if begun_write in inherited and not await _has_begun(begun):
                await end_sandbox(process)
                raise _NotBegunError
            return process, pipes.output_read, pipes.input_write
    finally:
        for end in ends:
            os.close(end)


async def _has_begun(begun: int) -> bool:
    with anyio.move_on_after(START_S):
        await anyio.wait_readable(begun)
        return bool(os.read(begun, 1))
    # Slow, but not ended.
    return True
