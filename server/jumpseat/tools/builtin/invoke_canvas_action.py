"""``invoke_canvas_action``: an action on an open canvas."""

from __future__ import annotations

import json
from typing import Any, Final

from pydantic import Field

from jumpseat.agent.session.session import Session
from jumpseat.errors import ClientCallError, InvalidRequestError
from jumpseat.tools.session_tool import Resources, SessionTool, shows_canvases
from jumpseat.tools.tool import ToolArgs, ToolContext, ToolOutcome, failure


class InvokeCanvasActionArgs(ToolArgs):
    instance_id: str = Field(alias="instanceId", description="The open instance")
    action_name: str = Field(alias="actionName", description="The action, see list_canvas_capabilities")
    input: Any = Field(default=None, description="The input, which matches the input schema of the action")


async def _run(
    session: Session, _resources: Resources, ctx: ToolContext, args: InvokeCanvasActionArgs
) -> ToolOutcome:
    try:
        result = await session.canvases.invoke(args.instance_id, args.action_name, args.input)
    except (InvalidRequestError, ClientCallError) as error:
        return failure(str(error))
    return ToolOutcome(json.dumps({"result": result}, indent=2, ensure_ascii=False))


TOOL: Final = SessionTool(
    name="invoke_canvas_action",
    description="Invoke an action on an open canvas and get its result.",
    args=InvokeCanvasActionArgs,
    run=_run,
    intention=lambda args: f"{args.action_name} on canvas {args.instance_id}",
    is_offered=shows_canvases,
)
