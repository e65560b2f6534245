"""The Copilot accounts that this process uses: its own, and those of its sessions.

Each account is queried with its own token only. Sessions share cached data only if they have the same token.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from jumpseat.adapters.models.copilot_account import CopilotAccount, github_api_of
from jumpseat.adapters.models.copilot_login import COPILOT_API, host_url
from jumpseat.adapters.transport.http import HttpTransport
from jumpseat.adapters.wire import as_object, as_text
from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.settings import Login
from jumpseat.errors import ProviderError
from jumpseat_protocol.accounts import AccountQuotaSnapshot, SessionAuthStatusResult

MAX_ACCOUNTS: Final = 64
"""The maximum number of accounts whose user and models are cached."""


class CopilotAccounts:
    """A cache of Copilot accounts by token."""

    def __init__(self, environ: Mapping[str, str], transport: HttpTransport, user_agent: str) -> None:
        self._environ = environ
        self._transport = transport
        self._user_agent = user_agent
        self._kept: OrderedDict[str, CopilotAccount] = OrderedDict()

    async def account(self, login: Login) -> CopilotAccount:
        """Return the account of the current token of ``login``.

        Raises:
            ProviderAuthError: there is no token.
        """
        token = await login.token()
        # The operator's setting takes precedence over URLs from clients and from GitHub.
        api_url = self._environ.get("COPILOT_API_URL") or _api_of(login.facts)
        host = host_url(login.host)
        key = hashlib.sha256("\n".join((token, host, api_url or "")).encode()).hexdigest()
        account = self._kept.get(key)
        if account is None:
            account = self._kept[key] = CopilotAccount(
                token,
                self._transport,
                host=host,
                github_api_url=self._environ.get("COPILOT_DEBUG_GITHUB_API_URL") or github_api_of(host),
                api_url=api_url,
                user_agent=self._user_agent,
            )
            if len(self._kept) > MAX_ACCOUNTS:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return account

    async def user(self, login: Login, *, refresh: bool = False) -> JsonObject:
        """Return GitHub's description of the user, or the one provided by the client.

        Raises:
            ProviderError: the token is invalid, or GitHub cannot be reached.
        """
        if login.facts is not None and not refresh:
            return login.facts
        return await (await self.account(login)).user(refresh=refresh)

    async def status(self, login: Login) -> SessionAuthStatusResult:
        """Return the login status; a rejected token counts as not logged in."""
        user: JsonObject = {}
        # GitHub does not accept tokens of the Copilot API.
        if login.auth_type != COPILOT_API:
            try:
                user = await self.user(login)
            except ProviderError as error:
                if login.name is None:
                    return SessionAuthStatusResult(
                        is_authenticated=False, status_message=f"Not authenticated: {error}"
                    )
        name = login.name or as_text(user.get("login")) or None
        return SessionAuthStatusResult(
            is_authenticated=True,
            auth_type=login.auth_type,
            host=login.host,
            login=name,
            copilot_plan=as_text(user.get("copilot_plan")) or None,
            status_message=f"Logged in as {name}" if name else "Logged in",
        )

    async def quota(self, login: Login) -> dict[str, AccountQuotaSnapshot]:
        """Return the remaining quota of the account, by kind.

        Raises:
            ProviderError: GitHub cannot be reached.
        """
        user = await self.user(login, refresh=True)
        resets = as_text(user.get("quota_reset_date_utc")) or as_text(user.get("quota_reset_date"))
        return {
            kind: _quota(as_object(snapshot), resets)
            for kind, snapshot in as_object(user.get("quota_snapshots")).items()
            if isinstance(snapshot, dict)
        }


def _quota(snapshot: JsonObject, resets: str) -> AccountQuotaSnapshot:
    unlimited = snapshot.get("unlimited") is True or _number(snapshot.get("entitlement")) == -1
    entitled = 0.0 if unlimited else max(_number(snapshot.get("entitlement")) or 0.0, 0.0)
    percentage = _number(snapshot.get("percent_remaining"))
    remaining = _number(snapshot.get("quota_remaining", snapshot.get("remaining")))
    if remaining is None:
        remaining = entitled * (100.0 if percentage is None else percentage) / 100
    if percentage is None:
        percentage = 100.0 * remaining / entitled if entitled else 100.0
    beyond = snapshot.get("overage_permitted") is True
    return AccountQuotaSnapshot(
        is_unlimited_entitlement=unlimited,
        entitlement_requests=-1 if unlimited else round(entitled),
        used_requests=0 if unlimited else max(round(entitled - remaining), 0),
        remaining_percentage=percentage,
        usage_allowed_with_exhausted_quota=beyond,
        overage=_number(snapshot.get("overage_count")) or 0.0,
        overage_allowed_with_exhausted_quota=beyond,
        reset_date=resets or as_text(snapshot.get("timestamp_utc")) or None,
    )


def _api_of(facts: JsonObject | None) -> str | None:
    return as_text(as_object((facts or {}).get("endpoints")).get("api")) or None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
