"""``read_bash``: read the new output of a command in the background."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from jumpseat.tools.shell.shells import follow, report, unknown_shell
from jumpseat.tools.tool import BuiltinTool, ToolArgs, ToolContext, ToolOutcome


class ReadBashArgs(ToolArgs):
    shell_id: str = Field(alias="shellId")
    delay: float = Field(5, description="Seconds to wait for its end")


async def run_read_bash(ctx: ToolContext, args: ReadBashArgs) -> ToolOutcome:
    shell = ctx.shells.get(args.shell_id)
    if shell is None:
        return unknown_shell(ctx, args.shell_id)
    await follow(shell, ctx.partial, args.delay)
    text = report(shell)
    if shell.finished:
        ctx.shells.release(shell)
    return ToolOutcome(text, exit_code=shell.exit_code)


TOOL: Final = BuiltinTool(
    name="read_bash",
    description="Read new output of a background command.",
    args=ReadBashArgs,
    run=run_read_bash,
    intention=lambda args: f"Read output of shell {args.shell_id}",
    position=20,
    follows="bash",
    for_plans=True,
    runs_commands=True,
)
