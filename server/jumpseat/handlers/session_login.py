"""How a client that opens a session says who the session is."""

from __future__ import annotations

from functools import partial
from typing import Literal

from jumpseat.agent.login import Login
from jumpseat.errors import InvalidRequestError
from jumpseat.handlers.context import Context
from jumpseat_protocol.callbacks import GitHubTokenParams, GitHubTokenResult
from jumpseat_protocol.sessions import SessionOptions


def login_of_options(ctx: Context, options: SessionOptions, session_id: str) -> Login | None:
    """Who the session is to be by its options; ``None`` where they do not say.

    Raises:
        InvalidRequestError: they say it twice.
    """
    registration = options.git_hub_token_provider_registration_id
    if registration is None:
        token = options.git_hub_token
        return ctx.models.copilot.login_with_token(token) if token is not None else None
    if options.git_hub_token is not None:
        raise InvalidRequestError("gitHubToken and gitHubTokenProviderRegistrationId exclude each other")
    return ctx.models.copilot.login_by_asking(partial(_ask, ctx, registration, session_id))


async def _ask(
    ctx: Context, registration: str, session_id: str, host: str, reason: Literal["initial", "refresh"]
) -> GitHubTokenResult:
    return await ctx.connection.github_token(
        GitHubTokenParams(registration_id=registration, host=host, session_id=session_id, reason=reason)
    )
