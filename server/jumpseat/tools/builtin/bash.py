"""``bash``: run a command line, wait for it, and leave it running in the background when it takes long.

Also owns how a running command is watched and how its end is worded, which the other shell tools share.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

import anyio
from pydantic import Field

from jumpseat.tools.files import describe
from jumpseat.tools.shell.shell import Shell
from jumpseat.tools.shell.shell_permission import shell_permission
from jumpseat.tools.tool import BuiltinTool, ToolArgs, ToolContext, ToolOutcome, failure

PARTIAL_INTERVAL_S: Final = 0.1

PARTIAL_LIMIT_BYTES: Final = 64 * 1024
"""Each partial output repeats the whole text: a chatty command must not flood the wire."""

LONGEST_WAIT_S: Final = 3600.0


class BashArgs(ToolArgs):
    command: str
    description: str = Field("", description="What it does, in a few words")
    mode: Literal["sync", "async"] = Field("sync", description="async: start in the background, with a stdin")
    initial_wait: float = Field(30, description="sync: seconds until it moves to the background")


async def run_bash(ctx: ToolContext, args: BashArgs) -> ToolOutcome:
    background = args.mode == "async"
    try:
        shell = await ctx.shells.start(
            args.command, cwd=ctx.cwd, environ=ctx.environ, stdin=background, call_id=ctx.call_id
        )
    except OSError as error:
        return failure(f"The command could not be started: {describe(error)} ({error.filename}).")
    except ValueError:
        return failure("The command holds a NUL character. Remove it and try again.")
    except anyio.ClosedResourceError:
        return failure("The session is closing: no new commands can be started.")
    if background:
        return ToolOutcome(f"<started in background with shellId: {shell.id}; read its output with read_bash>")
    try:
        await follow(shell, ctx.partial, args.initial_wait)
    except anyio.get_cancelled_exc_class():
        await shell.stop()
        ctx.shells.release(shell)
        raise
    text = report(shell)
    if shell.finished:
        ctx.shells.release(shell)
    return ToolOutcome(text)


async def follow(shell: Shell, partial: Callable[[str], None], seconds: float) -> None:
    """Wait up to ``seconds`` for the end of the command, showing its output on the way."""
    shown = 0

    def show() -> None:
        nonlocal shown
        if shell.output_bytes != shown:
            shown = shell.output_bytes
            partial(shell.output(PARTIAL_LIMIT_BYTES))

    # In this order a NaN becomes zero.
    with anyio.move_on_after(max(0.0, min(seconds, LONGEST_WAIT_S))):
        while not shell.finished:
            await shell.news(shown)
            show()
            with anyio.move_on_after(PARTIAL_INTERVAL_S):
                await shell.wait()
    show()


def report(shell: Shell) -> str:
    """The output nobody has read yet, and how the command stands, for the model."""
    output = shell.unread().rstrip("\r\n")
    if shell.finished:
        status = f"<exited with exit code {shell.exit_code}>"
    else:
        status = f"<still running with shellId: {shell.id}; go on with read_bash, end it with stop_bash>"
    return f"{output}\n{status}" if output else status


def unknown_shell(ctx: ToolContext, shell_id: str) -> ToolOutcome:
    known = ", ".join(shell.id for shell in ctx.shells) or "none"
    return failure(f"There is no shell {shell_id!r}: it never was, or its end has been reported. Shells: {known}.")


def _intention(args: BashArgs) -> str:
    return args.description or args.command


BASH: Final = BuiltinTool(
    name="bash",
    description="Run a command with bash in the working directory; each call is a fresh shell without stdin.",
    args=BashArgs,
    run=run_bash,
    intention=_intention,
    permission=lambda _ctx, args: shell_permission(args.command, _intention(args)),
)
