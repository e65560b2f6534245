"""``write_bash``: write to the standard input of a command in the background."""

from __future__ import annotations

from typing import Final

import anyio
from pydantic import Field

from jumpseat.tools.shell.shells import follow, report, unknown_shell
from jumpseat.tools.tool import BuiltinTool, ToolArgs, ToolContext, ToolOutcome, failure
from jumpseat_protocol.permissions import ShellCommand, ShellPermission

WRITE_TIMEOUT_S: Final = 5.0


class WriteBashArgs(ToolArgs):
    shell_id: str = Field(alias="shellId")
    input: str = Field(description="A newline is added")
    eof: bool = Field(False, description="Close its stdin then")
    delay: float = Field(2, description="Seconds to wait for its end")


async def run_write_bash(ctx: ToolContext, args: WriteBashArgs) -> ToolOutcome:
    shell = ctx.shells.get(args.shell_id)
    if shell is None:
        return unknown_shell(ctx, args.shell_id)
    if not shell.has_stdin:
        reason = "has ended" if shell.finished else "has no stdin. Start the command with mode async to write to it"
        return failure(f"Shell {shell.id} {reason}.")
    shell.interactive = True
    # A call that only closes stdin writes no empty line before it.
    text = args.input if args.input.endswith("\n") or (args.eof and not args.input) else f"{args.input}\n"
    try:
        with anyio.fail_after(WRITE_TIMEOUT_S):
            await shell.write(text, eof=args.eof)
    except TimeoutError:
        return failure(f"Shell {shell.id} does not read its input. Read its output with read_bash to see why.")
    except OSError:
        return failure(f"Shell {shell.id} has closed its input. Read its output with read_bash to see why.")
    await follow(shell, ctx.partial, args.delay)
    outcome = ToolOutcome(report(shell), sandboxed=shell.confined, exit_code=shell.exit_code)
    if shell.finished:
        ctx.shells.release(shell)
    return outcome


def _permission(ctx: ToolContext, args: WriteBashArgs) -> ShellPermission:
    """Ask for every input: to a shell or an interpreter it is a command, and its meaning cannot be analysed."""
    shell = ctx.shells.get(args.shell_id)
    target = shell.command if shell is not None else f"shell {args.shell_id}"
    return ShellPermission(
        full_command_text=args.input,
        intention=f"Write to the input of {target}",
        commands=[ShellCommand(identifier=f"write_bash {args.input}", read_only=False)],
        possible_paths=[],
        has_write_file_redirection=False,
        can_offer_session_approval=False,
        sandboxed=shell.confined if shell is not None else None,
    )


TOOL: Final = BuiltinTool(
    name="write_bash",
    description="Write to the stdin of a background command and read its new output.",
    args=WriteBashArgs,
    run=run_write_bash,
    intention=lambda args: f"Write to shell {args.shell_id}",
    permission=_permission,
    position=30,
    follows="bash",
    runs_commands=True,
)
