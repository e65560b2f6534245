"""``exit_plan_mode``: ask the user to approve a plan, and leave plan mode once it is approved.

Offered in plan mode only, to the main agent, and only while a client is attached that can show a plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pydantic import Field

from jumpseat.agent.session.questions import ask_about_plan
from jumpseat.agent.session.session import Session
from jumpseat.errors import ClientCallError, StoreError
from jumpseat.tools.session_tool import Resources, SessionTool
from jumpseat.tools.tool import ToolArgs, ToolContext, ToolOutcome, failure
from jumpseat_protocol.callbacks import ExitPlanModeParams
from jumpseat_protocol.events import PlanAction

UNASKED: Final = "The user could not be asked about the plan. End your turn with the plan."


NEXT: Final[Mapping[PlanAction, str]] = {
    "exit_only": "Do not implement it yet: end your turn and wait for the next message.",
    "interactive": (
        "You are now in interactive mode. Start implementing the plan now, in this same response. Approving the"
        " plan is your go-signal, so do not stop to ask whether to proceed or wait for another message."
    ),
    "autopilot": "You are now in autopilot mode. Implement the plan to its end without asking.",
    "autopilot_fleet": "You are now in autopilot mode. Implement the plan to its end without asking.",
}
"""The message to the model after an approval, by the action that the user has chosen."""


class ExitPlanModeArgs(ToolArgs):
    summary: str = Field(description="The plan in short")
    actions: list[PlanAction] = Field(
        default=["autopilot", "interactive", "exit_only"],
        min_length=1,
        description="What to let the user choose from",
    )
    recommended_action: PlanAction = Field(default="interactive", alias="recommendedAction")


async def _run(session: Session, resources: Resources, ctx: ToolContext, args: ExitPlanModeArgs) -> ToolOutcome:
    try:
        plan = await resources.read_plan(session)
        response = await ask_about_plan(
            session,
            ExitPlanModeParams(
                session_id=ctx.session_id,
                summary=args.summary,
                plan_content=plan or "",
                actions=args.actions,
                recommended_action=args.recommended_action,
            ),
        )
    except ClientCallError:
        return failure(UNASKED)
    except StoreError as error:
        return failure(str(error))
    if not response.approved:
        feedback = f" The user says: {response.feedback}" if response.feedback else ""
        return ToolOutcome(f"The plan was not approved. You are still in plan mode.{feedback}")
    # In autopilot mode, the model would be made to continue.
    deferred = response.defer_implementation
    action = "exit_only" if deferred else response.selected_action or args.recommended_action
    match action:
        case "interactive" | "exit_only":
            session.change_mode("interactive")
        case "autopilot" | "autopilot_fleet":
            session.change_mode("autopilot")
    return ToolOutcome(f"Plan approved! Exited plan mode.\n\n{NEXT[action]}")


TOOL: Final = SessionTool(
    name="exit_plan_mode",
    description=(
        "You are in plan mode: explore and plan, change nothing yet. Call this when the plan is ready,"
        " to have the user approve it."
    ),
    args=ExitPlanModeArgs,
    position=220,
    for_plans=True,
    run=_run,
    intention=lambda args: args.summary,
    is_offered=lambda session, _resources: (
        session.agent_mode == "plan" and session.identity is None and session.clients.plan_client() is not None
    ),
)
