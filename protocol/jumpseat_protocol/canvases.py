"""``session.canvas.*``: the canvases of a session's clients, and their open instances."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import Field

from jumpseat_protocol.sessions import CanvasAction, OpenCanvasInstance, SessionParams
from jumpseat_protocol.wire import Method, WireModel


class DiscoveredCanvas(WireModel):
    """A canvas of an attached client; ``extension_id`` names the provider."""

    extension_id: str
    canvas_id: str
    display_name: str
    description: str
    extension_name: str | None = None
    input_schema: dict[str, Any] | None = None
    actions: list[CanvasAction] | None = None
    """What can be done with the canvas."""


class CanvasListResult(WireModel):
    canvases: list[DiscoveredCanvas]
    """The canvases."""


class CanvasListOpenResult(WireModel):
    open_canvases: list[OpenCanvasInstance]
    """The open instances."""


class CanvasOpenRequestParams(SessionParams):
    """``extension_id`` is required if several providers have a canvas of that id."""

    canvas_id: str = Field(min_length=1)
    instance_id: str = Field(min_length=1)
    extension_id: str | None = None
    input: Any = None
    """What the canvas is opened with."""


class CanvasInstanceParams(SessionParams):
    instance_id: str = Field(min_length=1)


class CanvasInvokeParams(CanvasInstanceParams):
    action_name: str = Field(min_length=1)
    """The name of the action."""
    input: Any = None
    """The arguments of the action."""


class CanvasActionResult(WireModel):
    """``result`` is what the client returned."""

    result: Any = None
    """What the client returned."""


METHODS: Final[Mapping[str, Method]] = {
    "session.canvas.list": Method(SessionParams, CanvasListResult, "List the canvases of all attached clients."),
    "session.canvas.listOpen": Method(SessionParams, CanvasListOpenResult, "List the open canvases."),
    "session.canvas.open": Method(CanvasOpenRequestParams, OpenCanvasInstance, "Open a canvas."),
    "session.canvas.action.invoke": Method(
        CanvasInvokeParams, CanvasActionResult, "Invoke an action of an open canvas."
    ),
    "session.canvas.close": Method(CanvasInstanceParams, None, "Close a canvas."),
}
