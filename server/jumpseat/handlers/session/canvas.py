"""``session.canvas.*``: the canvases of a session's clients, and their open instances."""

from __future__ import annotations

from jumpseat.agent.session.session import Session
from jumpseat.sessions.context import Context
from jumpseat_protocol.canvases import (
    CanvasActionResult,
    CanvasInstanceParams,
    CanvasInvokeParams,
    CanvasListOpenResult,
    CanvasListResult,
    CanvasOpenRequestParams,
    DiscoveredCanvas,
)
from jumpseat_protocol.events import SessionCanvasOpened
from jumpseat_protocol.sessions import OpenCanvasInstance, SessionParams


def list_(ctx: Context, params: SessionParams) -> CanvasListResult:
    provided = ctx.registry.live(params.session_id).canvases.provided()
    return CanvasListResult(
        canvases=[
            DiscoveredCanvas(
                extension_id=attachment.canvas_provider,
                extension_name=attachment.canvas_provider_name,
                canvas_id=canvas.id,
                display_name=canvas.display_name,
                description=canvas.description,
                input_schema=canvas.input_schema,
                actions=canvas.actions,
            )
            for attachment, canvas in provided
        ]
    )


def list_open(ctx: Context, params: SessionParams) -> CanvasListOpenResult:
    """Return the instances that clients show."""
    return CanvasListOpenResult(open_canvases=open_canvases(ctx.registry.live(params.session_id)))


async def open_(ctx: Context, params: CanvasOpenRequestParams) -> OpenCanvasInstance:
    """Let the client that provides a canvas open an instance."""
    canvases = ctx.registry.live(params.session_id).canvases
    return _instance(await canvases.open(params.canvas_id, params.instance_id, params.input, params.extension_id))


async def close(ctx: Context, params: CanvasInstanceParams) -> None:
    """Let the client that shows an instance close it."""
    await ctx.registry.live(params.session_id).canvases.close(params.instance_id)


def open_canvases(session: Session) -> list[OpenCanvasInstance]:
    """Return the open instances of a session."""
    return [_instance(opened) for opened in session.canvases.open_instances()]


def _instance(opened: SessionCanvasOpened) -> OpenCanvasInstance:
    return OpenCanvasInstance(
        instance_id=opened.instance_id,
        extension_id=opened.extension_id,
        canvas_id=opened.canvas_id,
        extension_name=opened.extension_name,
        title=opened.title,
        status=opened.status,
        url=opened.url,
        input=opened.input,
    )


async def action_invoke(ctx: Context, params: CanvasInvokeParams) -> CanvasActionResult:
    """Let the client that shows an instance carry out an action."""
    canvases = ctx.registry.live(params.session_id).canvases
    return CanvasActionResult(result=await canvases.invoke(params.instance_id, params.action_name, params.input))
