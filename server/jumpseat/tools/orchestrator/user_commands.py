"""The commands of the user: they run because a client says so, beside those of the agent.

They get the environment of all child processes, end with the session, and run outside of the sandbox unless the
session requires it. What the policy of a host forbids is refused.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import Final

import anyio
from anyio.abc import TaskGroup

from jumpseat.agent.interfaces import CommandResult, ProcessListener
from jumpseat.agent.session.session import Session
from jumpseat.errors import InvalidRequestError, StoreError
from jumpseat.sandbox.session import SessionSandbox
from jumpseat.tools.files import describe
from jumpseat.tools.shell.process import non_interactive
from jumpseat.tools.shell.sandbox_needs import shell_permission
from jumpseat.tools.shell.shells import PARTIAL_LIMIT_BYTES, Shells, follow
from jumpseat.tools.shell.streamed_process import StreamedProcess
from jumpseat_protocol import events

MOST: Final = 64
"""Limit of the commands of one session that run at the same time."""

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
        self._shells = Shells(self._tasks, make_sandbox=None if sandbox is None else lambda: sandbox)
        self._processes: dict[str, StreamedProcess] = {}
        # The commands that are waited for, by the client's id; the event cancels.
        self._requested: dict[str, anyio.Event] = {}
        self._closed = False

    # --- processes that report by notifications -------------------------------------------------------------------

    def start(self, command: str, cwd: Path, timeout_s: float | None, listener: ProcessListener) -> str:
        """Start a command in the background and return its id; see the interface."""
        self._check_room()
        # Judged as if it changed to its folder first.
        self._check_policy(command if cwd == self._session.settings.cwd else f"cd {quote(str(cwd))} && {command}")
        process = StreamedProcess(self._session.services.secrets, listener)
        self._processes[process.id] = process
        self._tasks.start_soon(self._run, process, command, cwd, timeout_s, name=f"process {process.id}")
        return process.id

    def kill(self, process_id: str, name: str) -> bool:
        """Send a signal to the process group of a command; returns ``False`` if the command does not run."""
        process = self._processes.get(process_id)
        return process is not None and process.send(name)

    async def _run(self, process: StreamedProcess, command: str, cwd: Path, timeout_s: float | None) -> None:
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
        self._check_policy(command)
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

    def _check_policy(self, command: str) -> None:
        """Check that no host's policy forbids a command: it is above what a client of the session wants."""
        permissions = self._session.permissions
        if permissions.host_policy is not None:
            permissions.check_host_policy(shell_permission(command, command))

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
