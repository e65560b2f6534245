"""``list_canvas_capabilities``: the actions of a canvas and the schemas of their inputs."""

from __future__ import annotations

import json
from typing import Final

from pydantic import Field

from jumpseat.agent.session.session import Session
from jumpseat.errors import InvalidRequestError
from jumpseat.tools.session_tool import Resources, SessionTool, shows_canvases
from jumpseat.tools.tool import ToolArgs, ToolContext, ToolOutcome, failure


class ListCanvasCapabilitiesArgs(ToolArgs):
    canvas_id: str = Field(alias="canvasId", description="The canvas")
    extension_id: str | None = Field(
        default=None, alias="extensionId", description="The provider, where several have a canvas of that id"
    )


async def _run(
    session: Session, _resources: Resources, ctx: ToolContext, args: ListCanvasCapabilitiesArgs
) -> ToolOutcome:
    try:
        attachment, canvas = session.canvases.find(args.canvas_id, args.extension_id)
    except InvalidRequestError as error:
        return failure(str(error))
    listed = {"extensionId": attachment.canvas_provider, "canvasId": canvas.id, **canvas.wire()}
    listed.pop("id")
    return ToolOutcome(json.dumps(listed, indent=2, ensure_ascii=False))


TOOL: Final = SessionTool(
    name="list_canvas_capabilities",
    description="Get the input schema of a canvas, its actions and their input schemas.",
    args=ListCanvasCapabilitiesArgs,
    read_only=True,
    run=_run,
    intention=lambda args: f"List the capabilities of canvas {args.canvas_id}",
    is_offered=shows_canvases,
)
