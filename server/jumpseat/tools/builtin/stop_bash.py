"""``stop_bash``: end a command in the background, with all its processes."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from jumpseat.tools.shell.shells import report, unknown_shell
from jumpseat.tools.tool import BuiltinTool, ToolArgs, ToolContext, ToolOutcome


class StopBashArgs(ToolArgs):
    shell_id: str = Field(alias="shellId")


async def run_stop_bash(ctx: ToolContext, args: StopBashArgs) -> ToolOutcome:
    shell = ctx.shells.get(args.shell_id)
    if shell is None:
        return unknown_shell(ctx, args.shell_id)
    await shell.stop()
    ctx.shells.release(shell)
    return ToolOutcome(f"{report(shell)}\n<stopped shellId: {shell.id}>")


TOOL: Final = BuiltinTool(
    name="stop_bash",
    description="Stop a background command and all its processes.",
    args=StopBashArgs,
    run=run_stop_bash,
    intention=lambda args: f"Stop shell {args.shell_id}",
    position=40,
    follows="bash",
    runs_commands=True,
)
