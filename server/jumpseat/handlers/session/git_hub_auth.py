"""``session.gitHubAuth.*``: the login of a session at the Copilot API."""

from __future__ import annotations

from pydantic import ValidationError

from jumpseat.errors import InvalidRequestError
from jumpseat.sessions.accounts import describe, id_of_auth, store_login
from jumpseat.sessions.context import Context
from jumpseat_protocol.accounts import (
    AuthCredentials,
    AuthInfo,
    SessionAuthStatusResult,
    SessionLoginParams,
    SessionLogoutUserParams,
    SessionSwitchParams,
    SetCredentialsParams,
    SetCredentialsResult,
)
from jumpseat_protocol.sessions import SessionParams


async def get_status(ctx: Context, params: SessionParams) -> SessionAuthStatusResult:
    """Return the session's own login, or that of the process. The plan is as GitHub reports it."""
    own = ctx.registry.live(params.session_id).settings.login
    return await ctx.models.copilot.status(await ctx.models.copilot.login_of_session(own))


async def set_credentials(ctx: Context, params: SetCredentialsParams) -> SetCredentialsResult:
    """Change the credentials of a session, from its next request on. They are not checked."""
    session = ctx.registry.live(params.session_id)
    given = params.credentials
    if given is None:
        return SetCredentialsResult()
    login = ctx.models.copilot.login_of(given)
    if given.type == "user" and not given.token and given.host and given.login and _sees_accounts(ctx):
        # The token of a user is stored, if the user has logged in here.
        stored = {found.id: found for found in await ctx.process.accounts.all()}
        login = stored.get(id_of_auth(AuthInfo(type="user", host=given.host, login=given.login)), login)
    session.settings.login = login
    return SetCredentialsResult(copilot_user_resolved=given.copilot_user is not None)


async def get_current_auth_info(ctx: Context, params: SessionParams) -> AuthInfo | None:
    """Return the login that the session uses, without its token."""
    own = ctx.registry.live(params.session_id).settings.login
    login = await ctx.models.copilot.login_of_session(own)
    return None if login is None else describe(login)


async def get_all_auth_available(ctx: Context, params: SessionParams) -> list[SessionAuthStatusResult]:
    """Return the status of the login of the process and of all stored logins."""
    ctx.registry.live(params.session_id)
    copilot = ctx.models.copilot
    return [await copilot.status(login) for login in await copilot.all_logins()]


async def last_auth_errors(ctx: Context, params: SessionParams) -> list[str]:
    """Return why the session's login is not accepted, if it is not."""
    own = ctx.registry.live(params.session_id).settings.login
    login = await ctx.models.copilot.login_of_session(own)
    if login is None:
        return []
    status = await ctx.models.copilot.status(login)
    return [] if status.is_authenticated else [status.status_message or "Not authenticated"]


async def login(ctx: Context, params: SessionLoginParams) -> AuthInfo:
    """Log the session in with a token, which is stored if the client wants that.

    Raises:
        InvalidRequestError: the token belongs to another user.
        ProviderAuthError: GitHub rejects the token.
        StoreError: the login cannot be stored.
    """
    session = ctx.registry.live(params.session_id)
    if params.persist:
        session.settings.login = await store_login(ctx, params.host, params.token, params.login)
    else:
        given = AuthCredentials(type="user", host=params.host, login=params.login, token=params.token)
        session.settings.login = ctx.models.copilot.login_of(given)
    return describe(session.settings.login)


async def switch_to_auth(ctx: Context, params: SessionSwitchParams) -> None:
    """Make the session use a stored login, or the given token.

    Raises:
        InvalidRequestError: there is no such login, or its type is not supported.
    """
    session = ctx.registry.live(params.session_id)
    auth = params.auth_info
    if params.token:
        given = {"type": auth.type, "host": auth.host, "login": auth.login, "token": params.token}
        try:
            credentials = AuthCredentials.model_validate(given)
        except ValidationError:
            # Only the type can be invalid.
            raise InvalidRequestError(f"authInfo.type: unknown type {auth.type[:100]!r}") from None
        session.settings.login = ctx.models.copilot.login_of(credentials)
    else:
        session.settings.login = await ctx.process.accounts.find(id_of_auth(auth))


def logout(ctx: Context, params: SessionParams) -> bool:
    """Remove the session's own login, whether there was one; the login of the process is used from now on."""
    settings = ctx.registry.live(params.session_id).settings
    had, settings.login = settings.login is not None, None
    return had


async def logout_user(ctx: Context, params: SessionLogoutUserParams) -> bool:
    """Remove a stored login; return whether there was one."""
    ctx.registry.live(params.session_id)
    try:
        await ctx.process.accounts.remove(id_of_auth(params.auth_info))
    except InvalidRequestError:
        return False
    return True


async def refresh_copilot_user(ctx: Context, params: SessionParams) -> AuthInfo | None:
    """Ask GitHub again about the user of the session's login; return it with the login.

    Raises:
        ProviderError: the token is invalid, or GitHub cannot be reached.
    """
    own = ctx.registry.live(params.session_id).settings.login
    login = await ctx.models.copilot.login_of_session(own)
    if login is None:
        return None
    user = await ctx.models.copilot.user(login, refresh=True)
    info = describe(login)
    info.copilot_user = user
    info.login = info.login or str(user.get("login") or "") or None
    return info


def _sees_accounts(ctx: Context) -> bool:
    return ctx.connection.access is not None and ctx.connection.access.all
