"""``manage_schedule``: pace a scheduled task. Offered while the session has a schedule that the model paces."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from jumpseat.agent.session.session import Session
from jumpseat.errors import InvalidRequestError
from jumpseat.tools.session_tool import Resources, SessionTool
from jumpseat.tools.tool import ToolArgs, ToolContext, ToolOutcome, failure


class ManageScheduleArgs(ToolArgs):
    action: Literal["wakeup", "stop"]
    id: int = Field(description="Id of the schedule")
    seconds: float = Field(60, ge=0, le=30 * 86_400, description="wakeup: time until the next run")


async def _run(session: Session, _resources: Resources, _ctx: ToolContext, args: ManageScheduleArgs) -> ToolOutcome:
    schedules = session.schedules
    if args.action == "stop":
        stopped = schedules.stop(args.id)
        return ToolOutcome("Stopped.") if stopped else failure(f"There is no schedule with the id {args.id}.")
    try:
        schedules.rearm(args.id, (schedules.clock.now() + args.seconds) * 1000)
    except InvalidRequestError as error:
        return failure(str(error))
    return ToolOutcome(f"The next run of schedule {args.id} is in {args.seconds:g} seconds.")


TOOL: Final = SessionTool(
    name="manage_schedule",
    description="Set the next run of a scheduled task that you pace, or stop it.",
    args=ManageScheduleArgs,
    position=216,
    read_only=True,
    run=_run,
    intention=lambda args: f"{args.action} schedule {args.id}",
    is_offered=lambda session, _resources: session.schedules.has_self_paced,
)
