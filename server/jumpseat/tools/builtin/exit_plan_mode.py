"""``exit_plan_mode``: put a plan to the person behind the client, and go on with it once it is approved.

There in plan mode only, and only where a client can be asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import anyio.to_thread
from pydantic import Field

from jumpseat.agent.session.session import Session
from jumpseat.errors import ClientCallError, StoreError
from jumpseat.tools.questions import ask_about_plan
from jumpseat.tools.tool import BuiltinTool, Described, ToolArgs, ToolContext, ToolOutcome, failure
from jumpseat_protocol.callbacks import ExitPlanModeParams
from jumpseat_protocol.events import PlanAction

AUTOMATIC_TRIGGERS: Final = "The user could not be asked about the plan. End your turn with the plan."


NEXT: Final[Mapping[PlanAction, str]] = {
    "exit_only": "Do not implement it yet: end your turn and wait for the next message.",
    "interactive": (
        "You are now in interactive mode. Start implementing the plan now, in this same response. Approving the"
        " plan is your go-signal, so do not stop to ask whether to proceed or wait for another message."
    ),
    "autopilot": "You are now in autopilot mode. Implement the plan to its end without asking.",
    "autopilot_fleet": "You are now in autopilot mode. Implement the plan to its end without asking.",
}
"""What an approval means for the model."""


class ExitPlanModeArgs(ToolArgs):
    summary: str = Field(description="The plan in short")
    actions: list[PlanAction] = Field(
        default=["autopilot", "interactive", "exit_only"],
        min_length=1,
        description="What to let the user choose from",
    )
    recommended_action: PlanAction = Field(default="interactive", alias="recommendedAction")


EXIT_PLAN_MODE: Final = Described(
    name="exit_plan_mode",
    description=(
        "You are in plan mode: explore and plan, change nothing yet. Call this when the plan is ready,"
        " to have the user approve it."
    ),
    args=ExitPlanModeArgs,
)


class PlanTools:
    """The tool of one session. ``read`` gives the text of a file, ``None`` where there is none."""

    def __init__(self, session: Session, plan: Path, read: Callable[[Path], str | None]) -> None:
        self._session = session
        self._plan = plan
        self._read = read
        self._tool = EXIT_PLAN_MODE.bound(self._run, lambda args: args.summary)

    def tools(self) -> Mapping[str, BuiltinTool[ExitPlanModeArgs]]:
        if self._session.agent_mode != "plan" or self._session.clients.plan_client() is None:
            return {}
        return {self._tool.name: self._tool}

    async def ready(self) -> None:
        """It always is."""

    async def close(self, grace_s: float) -> None:
        """Nothing is running."""

    async def _run(self, ctx: ToolContext, args: ExitPlanModeArgs) -> ToolOutcome:
        try:
            plan = await anyio.to_thread.run_sync(self._read, self._plan)
            response = await ask_about_plan(
                self._session,
                ExitPlanModeParams(
                    session_id=ctx.session_id,
                    summary=args.summary,
                    plan_content=plan or "",
                    actions=args.actions,
                    recommended_action=args.recommended_action,
                ),
            )
        except ClientCallError:
            return failure(AUTOMATIC_TRIGGERS)
        except StoreError as error:
            return failure(str(error))
        if not response.approved:
            said = f" The user says: {response.feedback}" if response.feedback else ""
            return ToolOutcome(f"The plan was not approved. You are still in plan mode.{said}")
        action = response.selected_action or args.recommended_action
        match action:
            case "interactive" | "exit_only":
                self._session.change_mode("interactive")
            case "autopilot" | "autopilot_fleet":
                self._session.change_mode("autopilot")
        return ToolOutcome(f"Plan approved! Exited plan mode.\n\n{NEXT[action]}")
