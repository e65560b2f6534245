"""``session.shell.*``: commands of the user. No permission is asked for: the user wants them."""

from __future__ import annotations

from jumpseat.agent.interfaces import Stream
from jumpseat.sessions.context import Caller, Context
from jumpseat_protocol.shell import (
    EXIT,
    OUTPUT,
    CancelUserCommandParams,
    CancelUserCommandResult,
    ShellExecParams,
    ShellExecResult,
    ShellExitParams,
    ShellKillParams,
    ShellKillResult,
    ShellOutputParams,
    UserCommandParams,
    UserCommandResult,
)


class _Notifications:
    """Sends the output of a process to the client that started it."""

    def __init__(self, connection: Caller) -> None:
        self._connection = connection
        self.process_id = ""

    def output(self, stream: Stream, text: str) -> None:
        params = ShellOutputParams(process_id=self.process_id, stream=stream, data=text)
        self._connection.notify(OUTPUT, params.wire())

    def exited(self, exit_code: int) -> None:
        self._connection.notify(EXIT, ShellExitParams(process_id=self.process_id, exit_code=exit_code).wire())

    async def drain(self) -> None:
        await self._connection.drain()


def exec_(ctx: Context, params: ShellExecParams) -> ShellExecResult:
    """Start a command and answer at once; its output and its end are notifications to this client."""
    session = ctx.registry.live(params.session_id)
    listener = _Notifications(ctx.connection)
    cwd = session.settings.cwd / (params.cwd or "")
    timeout_s = params.timeout / 1000 if params.timeout else None
    listener.process_id = session.tools.user_commands.start(params.command, cwd, timeout_s, listener)
    return ShellExecResult(process_id=listener.process_id)


def kill(ctx: Context, params: ShellKillParams) -> ShellKillResult:
    """Send a signal to a command and the processes that it has started."""
    commands = ctx.registry.live(params.session_id).tools.user_commands
    return ShellKillResult(killed=commands.kill(params.process_id, params.signal))


async def execute_user_requested(ctx: Context, params: UserCommandParams) -> UserCommandResult:
    """Run a command to its end; the model learns the command and its output with the next prompt."""
    session = ctx.registry.live(params.session_id)
    done = await session.tools.user_commands.run(params.request_id, params.command)
    return UserCommandResult(
        tool_call_id=done.call_id,
        success=done.success,
        output=done.output,
        exit_code=done.exit_code,
        error=done.error,
    )


def cancel_user_requested(ctx: Context, params: CancelUserCommandParams) -> CancelUserCommandResult:
    """End a command that a request waits for."""
    commands = ctx.registry.live(params.session_id).tools.user_commands
    return CancelUserCommandResult(cancelled=commands.cancel(params.request_id))
