"""The login that a client gives a session: a GitHub token, or a callback that provides tokens."""

from __future__ import annotations

from functools import partial
from typing import Literal

from jumpseat.agent.login import Login
from jumpseat.errors import InvalidRequestError
from jumpseat.sessions.context import Context
from jumpseat_protocol.callbacks import GitHubTokenParams, GitHubTokenResult
from jumpseat_protocol.sessions import SessionOptions


def login_of_options(ctx: Context, options: SessionOptions, session_id: str) -> Login | None:
    """Return the login that ``options`` specify; ``None`` if they specify none.

    Raises:
        InvalidRequestError: ``options`` specify both a token and a token provider.
    """
    registration = options.git_hub_token_provider_registration_id
    if registration is None:
        token = options.git_hub_token
        return ctx.models.copilot.login_with_token(token) if token is not None else None
    if options.git_hub_token is not None:
        raise InvalidRequestError("gitHubToken and gitHubTokenProviderRegistrationId are mutually exclusive")
    return ctx.models.copilot.login_by_asking(partial(_request_token, ctx, registration, session_id))


async def _request_token(
    ctx: Context, registration: str, session_id: str, host: str, reason: Literal["initial", "refresh"]
) -> GitHubTokenResult:
    return await ctx.connection.github_token(
        GitHubTokenParams(registration_id=registration, host=host, session_id=session_id, reason=reason)
    )
