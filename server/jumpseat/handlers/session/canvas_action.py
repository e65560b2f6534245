"""``session.canvas.action.*``: actions on open instances of canvases."""

from __future__ import annotations

from jumpseat.sessions.context import Context
from jumpseat_protocol.canvases import CanvasActionResult, CanvasInvokeParams


async def invoke(ctx: Context, params: CanvasInvokeParams) -> CanvasActionResult:
    """Let the client that shows an instance carry out an action."""
    canvases = ctx.registry.live(params.session_id).canvases
    return CanvasActionResult(result=await canvases.invoke(params.instance_id, params.action_name, params.input))
