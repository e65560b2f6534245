"""The commands of the user: they run because a client says so, beside those of the agent.

They get the environment of all child processes, end with the session, and run outside of the sandbox unless the
session requires it.
"""

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
from anyio.abc import Process, TaskGroup

from jumpseat.agent.interfaces import CommandResult, ProcessListener, Stream
from jumpseat.agent.secrets import MaskedStream, Secrets
from jumpseat.agent.session.session import Session
from jumpseat.errors import InvalidRequestError, StoreError
from jumpseat.process_groups import kill_group, terminate_group
from jumpseat.sandbox.session import SessionSandbox
from jumpseat.tools.files import describe
from jumpseat.tools.shell.output import PARTIAL_LIMIT_BYTES, follow
from jumpseat.tools.shell.process import BASH, DRAIN_S, GRACE_S, KILL_WAIT_S, group_runs, non_interactive
from jumpseat.tools.shell.shells import Shells
from jumpseat_protocol import events

MOST: Final = 64
"""Limit of the commands of one session that run at the same time."""

STREAMS: Final[tuple[Stream, ...]] = ("stdout", "stderr")

PIECE_BYTES: Final = 64 * 1024
"""Size of the largest piece of output."""

CANCELED: Final = "The command was canceled."


class UserCommands:
    """The commands of the user in one session. Implements :class:`jumpseat.agent.interfaces.UserCommands`."""

    def __init__(
        self, session: Session, environ: Callable[[], dict[str, str]], sandbox: SessionSandbox | None
    ) -> None:
        self._session = session
        self._environ = environ
        self._sandbox = sandbox
        self._tasks: TaskGroup = session.services.tasks
        self._shells = Shells(self._tasks, sandbox=sandbox)
        self._processes: dict[str, _Process] = {}
        # The commands that are waited for, by the client's id; the event cancels.
        self._requested: dict[str, anyio.Event] = {}
        self._closed = False

    # --- processes that report by notifications -------------------------------------------------------------------

    def start(self, command: str, cwd: Path, timeout_s: float | None, listener: ProcessListener) -> str:
        """Start a command in the background and return its id; see the interface."""
        self._check_room()
        process = _Process(self._session.services.secrets, listener)
        self._processes[process.id] = process
        self._tasks.start_soon(self._run, process, command, cwd, timeout_s, name=f"process {process.id}")
        return process.id

    def kill(self, process_id: str, name: str) -> bool:
        """Send a signal to the process group of a command; returns ``False`` if the command does not run."""
        process = self._processes.get(process_id)
        return process is not None and process.send(name)

    async def _run(self, process: _Process, command: str, cwd: Path, timeout_s: float | None) -> None:
        def run() -> Awaitable[int]:
            if self._requires_sandbox():
                return process.run_confined(self._shells, command, cwd, self._environ())
            return process.run(command, cwd, non_interactive(self._environ()))

        try:
            await process.supervise(run, timeout_s)
        finally:
            del self._processes[process.id]

    # --- commands that are waited for -----------------------------------------------------------------------------

    async def run(self, request_id: str, command: str) -> CommandResult:
        """Run a command to its end; see the interface."""
        if request_id in self._requested:
            raise InvalidRequestError(f"the shell request {request_id!r} is still active: expected a new id")
        self._check_room()
        cancelled = self._requested[request_id] = anyio.Event()
        call_id = f"user-{uuid.uuid4()}"
        session = self._session
        intention = f"Execute shell command: {command}"
        session.emit(
            events.ToolUserRequested(
                tool_call_id=call_id,
                tool_name="local_shell",
                arguments={"command": command, "description": intention},
            )
        )
        result = CommandResult(call_id, success=False, output="", error=CANCELED)
        try:
            result = await self._follow(call_id, command, cancelled)
        finally:
            del self._requested[request_id]
            # The log of a session that is being closed takes no more events.
            with suppress(StoreError):
                session.emit(_completion(result))
        return result

    def cancel(self, request_id: str) -> bool:
        """Cancel a command that is waited for; returns ``False`` if there is none with this id."""
        cancelled = self._requested.get(request_id)
        if cancelled is None or cancelled.is_set():
            return False
        cancelled.set()
        return True

    async def _follow(self, call_id: str, command: str, cancelled: anyio.Event) -> CommandResult:
        session, secrets = self._session, self._session.services.secrets

        def partial(output: str) -> None:
            session.emit(events.ToolExecutionPartialResult(tool_call_id=call_id, partial_output=output))

        try:
            shell = await self._shells.start(
                command, cwd=session.settings.cwd, environ=self._environ(), outside=not self._requires_sandbox()
            )
        except (OSError, ValueError) as error:
            text = describe(error) if isinstance(error, OSError) else "the command contains a NUL character"
            return CommandResult(
                call_id, success=False, output="", error=f"The command could not be started: {text}"
            )
        except anyio.ClosedResourceError:
            return CommandResult(call_id, success=False, output="", error="The session is closing.")
        try:
            async with anyio.create_task_group() as tasks:

                async def wait_for_cancel() -> None:
                    await cancelled.wait()
                    tasks.cancel_scope.cancel()

                tasks.start_soon(wait_for_cancel)
                while not shell.finished:
                    await follow(shell, partial, 3600)
                tasks.cancel_scope.cancel()
        finally:
            if not shell.finished:
                await shell.stop()
            self._shells.release(shell)
        output = secrets(shell.output(PARTIAL_LIMIT_BYTES)).removesuffix("\n")
        if cancelled.is_set():
            error = f"{output}\n\n{CANCELED}" if output else CANCELED
            return CommandResult(call_id, success=False, output=output, error=error)
        ok = shell.exit_code == 0
        return CommandResult(call_id, ok, output, shell.exit_code, None if ok else output)

    # --- both -----------------------------------------------------------------------------------------------------

    async def close(self, grace_s: float) -> None:
        """End all commands; none can be started afterwards."""
        self._closed = True
        running = list(self._processes.values())
        for process in running:
            process.stop(grace_s)
        await self._shells.close(grace_s)
        for process in running:
            await process.ended.wait()

    def _requires_sandbox(self) -> bool:
        return self._sandbox is not None and self._sandbox.mode == "require"

    def _check_room(self) -> None:
        if self._closed:
            raise InvalidRequestError("the session is closing: no new commands can be started")
        if len(self._processes) + len(self._requested) >= MOST:
            raise InvalidRequestError(f"{MOST} commands of the user run already: wait for one, or end one")


def _completion(result: CommandResult) -> events.ToolExecutionComplete:
    return events.ToolExecutionComplete(
        tool_call_id=result.call_id,
        success=result.success,
        result=events.ToolResult(content=result.output) if result.success else None,
        error=None if result.success else events.ToolError(message=result.error or ""),
        tool_telemetry=None if result.exit_code is None else {"exitCode": result.exit_code},
        is_user_requested=True,
    )


class _Process:
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
                [*BASH, command],
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
