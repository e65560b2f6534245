"""``task_complete``: end the work on a prompt in autopilot mode. Offered in that mode only."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from jumpseat.agent.session.session import Session
from jumpseat.tools.session_tool import Resources, SessionTool
from jumpseat.tools.tool import ToolArgs, ToolContext, ToolOutcome


class TaskCompleteArgs(ToolArgs):
    summary: str = Field(description="What was done, and what is left, for the user")


async def _run(session: Session, _resources: Resources, _ctx: ToolContext, args: TaskCompleteArgs) -> ToolOutcome:
    session.autopilot.complete(args.summary)
    return ToolOutcome(args.summary, ends_turn=True)


TOOL: Final = SessionTool(
    name="task_complete",
    description=(
        "You are in autopilot mode: the work goes on until you call this. Call it when everything is done and"
        " checked, or when nothing more can be done."
    ),
    args=TaskCompleteArgs,
    position=230,
    run=_run,
    intention=lambda args: args.summary,
    is_offered=lambda session, _resources: session.autopilot.on,
)
