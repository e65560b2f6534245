"""``session.eventLog.*``: which events a client wants to be asked about."""

from __future__ import annotations

from jumpseat.handlers.context import Context
from jumpseat.mcp.asked import HEADERS, OAUTH
from jumpseat_protocol.server import SuccessResult
from jumpseat_protocol.sessions import InterestParams, InterestResult, ReleaseInterestParams


def register_interest(ctx: Context, params: InterestParams) -> InterestResult:
    """Note that this client answers events of a type. All events are delivered either way."""
    session = ctx.registry.live(params.session_id)
    handle = session.clients.add_interest(ctx.connection, params.event_type)
    if params.event_type in (OAUTH, HEADERS) and (host := ctx.mcp.of(session)) is not None:
        # A server may have wanted a token, or headers, before there was anybody to give some.
        host.retry_auth()
    return InterestResult(handle=handle)


def release_interest(ctx: Context, params: ReleaseInterestParams) -> SuccessResult:
    """Take it back; fine twice."""
    ctx.registry.live(params.session_id).clients.drop_interest(params.handle)
    return SuccessResult()
