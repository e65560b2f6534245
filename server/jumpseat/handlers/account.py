"""``account.getQuota``: the remaining quota of the account behind the Copilot API."""

from __future__ import annotations

from jumpseat.errors import InvalidRequestError
from jumpseat.sessions.context import Context
from jumpseat_protocol.accounts import AccountGetQuotaParams, AccountGetQuotaResult


async def get_quota(ctx: Context, params: AccountGetQuotaParams) -> AccountGetQuotaResult:
    """Return the quota of the account that the given token belongs to, by default of the process's own account.

    Raises:
        InvalidRequestError: the account is given as ``selectionId``.
    """
    if params.selection_id is not None:
        raise InvalidRequestError("selectionId is not supported: the server has no list of accounts")
    login = ctx.models.copilot.login_with_token(params.git_hub_token) if params.git_hub_token else None
    return AccountGetQuotaResult(quota_snapshots=await ctx.models.copilot.quota(login))
