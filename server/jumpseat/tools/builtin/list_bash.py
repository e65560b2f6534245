"""``list_bash``: list the commands in the background."""

from __future__ import annotations

from typing import Final

from jumpseat.tools.running_commands import RunningCommand
from jumpseat.tools.tool import BuiltinTool, ToolArgs, ToolContext, ToolOutcome


class ListBashArgs(ToolArgs):
    pass


async def run_list_bash(ctx: ToolContext, _args: ListBashArgs) -> ToolOutcome:
    return ToolOutcome("\n".join(_line(shell) for shell in ctx.shells) or "No shells.")


def _line(shell: RunningCommand) -> str:
    if not shell.finished:
        state = f"running for {shell.age_s:.0f}s"
    else:
        state = f"exited with exit code {shell.exit_code}"
        if shell.alive:
            state += ", background processes still running"
    unread = f", {shell.unread_bytes} bytes unread" if shell.unread_bytes else ""
    return f"shellId {shell.id} ({state}{unread}): {shell.command}"


TOOL: Final = BuiltinTool(
    name="list_bash",
    description="List background commands.",
    args=ListBashArgs,
    run=run_list_bash,
    intention=lambda _args: "List running commands",
    position=50,
    follows="bash",
    for_plans=True,
)
