"""``account.*``: the login of the process at the Copilot API, and the stored logins."""

from __future__ import annotations

from jumpseat.errors import InvalidRequestError, ProviderError
from jumpseat.sessions.accounts import describe, id_of_auth, store_login
from jumpseat.sessions.context import Context
from jumpseat_protocol.accounts import (
    AccountGetQuotaParams,
    AccountGetQuotaResult,
    AccountLoginParams,
    AccountLoginResult,
    AccountLogoutParams,
    AccountLogoutResult,
    CurrentAuthResult,
    StoredAccount,
)
from jumpseat_protocol.server import EmptyParams


async def get_quota(ctx: Context, params: AccountGetQuotaParams) -> AccountGetQuotaResult:
    """Return the quota of a stored login or of the owner of a token, by default of the process's own account.

    Raises:
        InvalidRequestError: ``selectionId`` is not the id of a stored login.
    """
    login = None
    if params.git_hub_token:
        login = ctx.models.copilot.login_with_token(params.git_hub_token)
    elif params.selection_id is not None:
        ctx.require_all("selectionId")
        login = await ctx.process.accounts.find(params.selection_id)
    return AccountGetQuotaResult(quota_snapshots=await ctx.models.copilot.quota(login))


async def get_current_auth(ctx: Context, params: EmptyParams) -> CurrentAuthResult:
    """Return the login of the process without its token; the reason, if GitHub does not accept it."""
    login = await ctx.models.copilot.own_login()
    if login is None:
        return CurrentAuthResult()
    info = describe(login)
    try:
        user = await ctx.models.copilot.user(login)
    except ProviderError as error:
        return CurrentAuthResult(auth_info=info if login.name else None, auth_errors=[str(error)])
    info.copilot_user = user
    info.login = info.login or str(user.get("login") or "") or None
    return CurrentAuthResult(auth_info=info)


async def get_all_users(ctx: Context, params: EmptyParams) -> list[StoredAccount]:
    """Return the logins in the keyring with their tokens, the current one first.

    A login whose token is in a file is left out: it is the only one, and plain tokens stay in their file.
    """
    accounts: list[StoredAccount] = []
    for login in await ctx.process.accounts.all():
        if login.plain:
            continue
        try:
            token = await login.token()
        except ProviderError:
            token = None
        accounts.append(StoredAccount(auth_info=describe(login), selection_id=login.id, token=token))
    return accounts


async def login(ctx: Context, params: AccountLoginParams) -> AccountLoginResult:
    """Check a token, store it, and use it from now on where nothing else gives a login.

    Raises:
        InvalidRequestError: the token belongs to another user.
        ProviderAuthError: GitHub rejects the token.
        StoreError: the login cannot be stored.
    """
    await store_login(ctx, params.host, params.token, params.login)
    return AccountLoginResult(stored_in_vault=True)


async def logout(ctx: Context, params: AccountLogoutParams) -> AccountLogoutResult:
    """Remove a stored login.

    Raises:
        InvalidRequestError: no login is named, or it is not stored.
    """
    if params.selection_id is not None:
        login_id = params.selection_id
    elif params.auth_info is not None:
        login_id = id_of_auth(params.auth_info)
    else:
        raise InvalidRequestError("Missing required account selection: set selectionId or authInfo")
    return AccountLogoutResult(has_more_users=await ctx.process.accounts.remove(login_id))
