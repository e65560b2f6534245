"""``session.create``: a new session for this connection."""

from __future__ import annotations

from jumpseat.agent.session.session import Session
from jumpseat.sessions.context import Context
from jumpseat.sessions.opening import create_session
from jumpseat_protocol.sessions import Capabilities, SessionCreateParams, SessionOpenedResult, UiCapabilities


async def create(ctx: Context, params: SessionCreateParams) -> SessionOpenedResult:
    """Create a session. ``session.created`` and ``session.start`` precede the response."""
    return opened_result(ctx, await create_session(ctx, params))


def opened_result(ctx: Context, session: Session) -> SessionOpenedResult:
    """Return the result of ``session.create`` and ``session.resume``."""
    return SessionOpenedResult(
        session_id=session.id,
        workspace_path=ctx.registry.storage(session).shown_path,
        start_time=session.started_at,
        mode=session.settings.mode,
        capabilities=Capabilities(
            ui=UiCapabilities(
                elicitation=session.clients.can_elicit(),
                mcp_apps=session.settings.options.request_mcp_apps,
                canvases=session.clients.can_render_canvases(),
            )
        ),
    )
