"""``bash``: run a command line, wait for it, and leave it running in the background if it takes long."""

from __future__ import annotations

from functools import partial
from typing import Final, Literal

import anyio
from pydantic import Field, field_validator

from jumpseat.agent.interfaces import STARTED
from jumpseat.errors import ClientCallError
from jumpseat.sandbox.session import STILL_CONFINED, SandboxUnavailableError, StillConfinedError
from jumpseat.tools.files import describe
from jumpseat.tools.shell.sandbox_needs import MAX_COMMAND_BYTES, Placement, place, shell_permission
from jumpseat.tools.shell.shells import follow, report
from jumpseat.tools.tool import BuiltinTool, Prepared, ToolArgs, ToolContext, ToolOutcome, failure
from jumpseat_protocol.permissions import ShellPermission

LOST: Final = (
    "The command was given up, because {error}. It may have begun, and was not started again: look at its effects"
    " before you run it once more."
)


class BashArgs(ToolArgs):
    command: str
    description: str = Field("", description="In a few words")
    mode: Literal["sync", "async"] = Field("sync", description="async: in the background, with a stdin")
    detach: bool = Field(False, description="async: for servers")
    initial_wait: float = Field(30, description="sync: seconds in the foreground")
    unsandboxed: str | None = Field(None, description="Reason to run it outside of the sandbox; asks the user")

    @field_validator("command")
    @classmethod
    def _fits(cls, command: str) -> str:
        if len(command.encode("utf-8", "surrogatepass")) > MAX_COMMAND_BYTES:
            raise ValueError(f"expected at most {MAX_COMMAND_BYTES} bytes; write a script to a file and run that")
        return command


async def run_bash(ctx: ToolContext, args: BashArgs) -> ToolOutcome:
    background = args.mode == "async"
    placement = _placement(ctx, args)
    try:
        shell = await ctx.shells.start(
            args.command,
            cwd=ctx.cwd,
            environ=ctx.environ(),
            stdin=background,
            call_id=ctx.call_id,
            outside=placement.leaves is not None,
            hosts=None if ctx.confined_only else placement.hosts,
        )
    except (SandboxUnavailableError, StillConfinedError) as error:
        return failure(f"{error}.")
    except OSError as error:
        return failure(f"The command could not be started: {describe(error)} ({error.filename}).")
    except ValueError:
        return failure("The command contains a NUL character. Remove it and try again.")
    except ClientCallError as error:
        return failure(LOST.format(error=error))
    except anyio.ClosedResourceError:
        return failure("The session is closing: no new commands can be started.")
    shell.description, shell.detached = args.description, args.detach
    if background:
        told = "; you will be told when it ends" if ctx.shells.leave(shell) else ""
        text = f"{STARTED}{shell.id}; read its output with read_bash{told}>"
        return ToolOutcome(text, sandboxed=shell.confined, exit_code=shell.exit_code)
    try:
        await follow(shell, ctx.partial, args.initial_wait)
    except anyio.get_cancelled_exc_class():
        await shell.stop()
        ctx.shells.release(shell)
        raise
    text = report(shell)
    if shell.finished:
        ctx.shells.release(shell)
    else:
        ctx.shells.leave(shell)
    return ToolOutcome(text, sandboxed=shell.confined, exit_code=shell.exit_code)


def _permission(ctx: ToolContext, args: BashArgs) -> ShellPermission:
    return shell_permission(args.command, _intention(args), _placement(ctx, args))


def _placement(ctx: ToolContext, args: BashArgs) -> Placement:
    """Return where the command runs, once it is approved."""
    shells = ctx.shells
    return place(
        args.command,
        confines=shells.confines(),
        may_leave=shells.may_leave,
        unsandboxed=args.unsandboxed,
        counts=shells.sandbox_counts,
    )


def _intention(args: BashArgs) -> str:
    return args.description or args.command


async def _prepare(ctx: ToolContext, args: BashArgs) -> Prepared | ToolOutcome:
    request, placement = _permission(ctx, args), _placement(ctx, args)
    if placement.leaves is not None:
        if ctx.shells.has_confined:
            return failure(f"{STILL_CONFINED}.")
        # Imported here: few commands leave the sandbox.
        from jumpseat.tools.shell.git_hooks import hooks_of

        hooks = await hooks_of(args.command, ctx.cwd, ctx.environ(), ctx.programs)
        request = shell_permission(args.command, _intention(args), placement, hooks)
    return Prepared(request, partial(run_bash, ctx, args))


TOOL: Final = BuiltinTool(
    name="bash",
    description="Run a command with bash in the working directory; each call is a fresh shell without stdin.",
    args=BashArgs,
    run=run_bash,
    intention=_intention,
    permission=_permission,
    prepares=_prepare,
    ready=lambda ctx: ctx.shells.probe(),
    position=10,
    runs_commands=True,
)
