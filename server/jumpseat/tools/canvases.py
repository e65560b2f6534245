"""The sources of the canvas tools, which are offered while a client shows canvases to its user."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from jumpseat.agent.session.session import Session
from jumpseat.tools.session_tool import SessionTool
from jumpseat.tools.tool import BuiltinTool


class CanvasTool(SessionTool):
    """Offers ``tool`` while a client renders canvases and a client provides some."""

    def __init__(self, session: Session, tool: BuiltinTool[Any]) -> None:
        super().__init__(tool, lambda: session.clients.can_render_canvases() and bool(session.canvases.provided()))


class CanvasCatalogue(CanvasTool):
    """Tells the model which canvases there are, beside the tool that opens them."""

    def __init__(self, session: Session, tool: BuiltinTool[Any]) -> None:
        super().__init__(session, tool)
        self._session = session
        self._name = tool.name

    def instructions(self, offered: Collection[str]) -> list[str]:
        """See :class:`jumpseat.tools.tool.Instructing`."""
        if self._name not in offered:
            return []
        lines = [
            f"- {canvas.id} ({canvas.display_name}, of {attachment.canvas_provider}): {canvas.description}"
            for attachment, canvas in self._session.canvases.provided()
        ]
        return ["\n".join(["Canvases that open_canvas can show to the user:", *lines])]
