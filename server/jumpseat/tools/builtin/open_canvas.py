"""``open_canvas``: show an instance of a client's canvas to the user."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, Final

from pydantic import Field

from jumpseat.agent.session.session import Session
from jumpseat.errors import ClientCallError, InvalidRequestError
from jumpseat.tools.session_tool import Resources, SessionTool, SessionTools, shows_canvases
from jumpseat.tools.tool import ToolArgs, ToolContext, ToolOutcome, failure
from jumpseat_protocol.wire import to_wire


class OpenCanvasArgs(ToolArgs):
    canvas_id: str = Field(alias="canvasId", description="The canvas")
    instance_id: str = Field(
        alias="instanceId",
        min_length=1,
        description="A name of your choice for the instance; the name of an open instance shows that one again",
    )
    extension_id: str | None = Field(
        default=None, alias="extensionId", description="The provider, where several have a canvas of that id"
    )
    input: Any = Field(default=None, description="The input, which matches the input schema of the canvas")


async def _run(session: Session, _resources: Resources, ctx: ToolContext, args: OpenCanvasArgs) -> ToolOutcome:
    try:
        opened = await session.canvases.open(args.canvas_id, args.instance_id, args.input, args.extension_id)
    except (InvalidRequestError, ClientCallError) as error:
        return failure(str(error))
    return ToolOutcome(json.dumps(to_wire(opened), indent=2, ensure_ascii=False))


TOOL: Final = SessionTool(
    name="open_canvas",
    description="Open a canvas, a surface of the user's application, and show it to the user.",
    args=OpenCanvasArgs,
    run=_run,
    intention=lambda args: f"Open canvas {args.canvas_id}",
    is_offered=shows_canvases,
)


def source(session: Session, resources: Resources) -> CanvasCatalogue:
    """Return the session's tool."""
    return CanvasCatalogue([TOOL], resources, session)


class CanvasCatalogue(SessionTools):
    """Tells the model which canvases there are, beside the tool that opens them."""

    __slots__ = ()

    def instructions(self, offered: Collection[str]) -> list[str]:
        """See :class:`jumpseat.tools.tool.Instructing`."""
        if TOOL.name not in offered:
            return []
        lines = [
            f"- {canvas.id} ({canvas.display_name}, of {attachment.canvas_provider}): {canvas.description}"
            for attachment, canvas in self._session.canvases.provided()
        ]
        return ["\n".join(["Canvases that open_canvas can show to the user:", *lines])]
