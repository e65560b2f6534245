"""Shared by the canvas tools, which are offered while a client shows canvases to its user."""

from __future__ import annotations

from jumpseat.agent.session.session import Session
from jumpseat.tools.resources import Resources


def shows_canvases(session: Session, _resources: Resources) -> bool:
    """Return whether a client renders canvases and a client provides some."""
    return session.clients.can_render_canvases() and bool(session.canvases.provided())
