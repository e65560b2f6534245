"""``session.gitHubAuth.*``: the login of a session at the Copilot API."""

from __future__ import annotations

from jumpseat.sessions.context import Context
from jumpseat_protocol.accounts import SessionAuthStatusResult, SetCredentialsParams
from jumpseat_protocol.server import SuccessResult
from jumpseat_protocol.sessions import SessionParams


async def get_status(ctx: Context, params: SessionParams) -> SessionAuthStatusResult:
    """Return the session's own login, or that of the process. The plan is as GitHub reports it."""
    return await ctx.models.copilot.status(ctx.registry.live(params.session_id).settings.login)


def set_credentials(ctx: Context, params: SetCredentialsParams) -> SuccessResult:
    """Change the credentials of a session, from its next request on. They are not checked."""
    session = ctx.registry.live(params.session_id)
    if params.credentials is not None:
        session.settings.login = ctx.models.copilot.login_of(params.credentials)
    return SuccessResult()
