"""Logins as clients see them, and the stored logins that clients add and remove."""

from __future__ import annotations

from jumpseat.agent.settings import Login
from jumpseat.errors import InvalidRequestError, ProviderAuthError, ProviderError
from jumpseat.sessions.context import Context
from jumpseat.store.user.accounts import StoredLogin, id_of
from jumpseat_protocol.accounts import AuthInfo

WITH_TOKEN = frozenset({"env", "gh-cli", "token"})
"""The types whose token the SDKs require in an answer, where it is empty."""


def describe(login: Login) -> AuthInfo:
    """Return a login without its credentials."""
    return AuthInfo(
        type=login.auth_type,
        host=login.host,
        login=login.name or ("" if login.auth_type == "gh-cli" else None),
        env_var=login.variable,
        token="" if login.auth_type in WITH_TOKEN else None,
        copilot_user=login.facts,
    )


async def store_login(ctx: Context, host: str, token: str, name: str | None) -> StoredLogin:
    """Check a token and store it as the current login.

    A site that cannot be reached is no obstacle if the user is known.

    Raises:
        ProviderAuthError: GitHub rejects the token.
        ProviderError: GitHub cannot be reached, and no user is given.
        InvalidRequestError: the token belongs to another user, or is not one.
        StoreError: the login cannot be stored.
    """
    ctx.process.secrets.add([token])
    try:
        owner = await ctx.models.copilot.name_of(host, token)
    except ProviderAuthError:
        raise
    except ProviderError:
        if not name:
            raise
        owner = name
    if not (owner or name):
        raise InvalidRequestError("login is required: GitHub does not report the user of the token")
    if owner and name and owner.lower() != name.lower():
        raise InvalidRequestError(f"the token belongs to {owner!r}, not to {name!r}")
    stored = await ctx.process.accounts.add(host, owner or name or "", token)
    ctx.models.copilot.use_stored()
    return stored


def id_of_auth(auth: AuthInfo) -> str:
    """Return the id of the stored login that a client means.

    Raises:
        InvalidRequestError: the host or the name is missing.
    """
    if not auth.host or not auth.login:
        raise InvalidRequestError("authInfo needs host and login: only stored logins can be chosen or removed")
    return id_of(auth.host, auth.login)
