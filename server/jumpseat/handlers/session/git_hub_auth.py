"""``session.gitHubAuth.*``: as whom a session calls the Copilot API."""

from __future__ import annotations

from jumpseat.sessions.context import Context
from jumpseat_protocol.accounts import SessionAuthStatusResult, SetCredentialsParams
from jumpseat_protocol.server import SuccessResult
from jumpseat_protocol.sessions import SessionParams


async def get_status(ctx: Context, params: SessionParams) -> SessionAuthStatusResult:
    """The session's own login, else that of the process. The plan is what GitHub says it is."""
    return await ctx.models.copilot.status(ctx.registry.live(params.session_id).settings.login)


def set_credentials(ctx: Context, params: SetCredentialsParams) -> SuccessResult:
    """Make the session somebody else from its next request on; nothing is checked before."""
    session = ctx.registry.live(params.session_id)
    if params.credentials is not None:
        session.settings.login = ctx.models.copilot.login_of(params.credentials)
    return SuccessResult()
