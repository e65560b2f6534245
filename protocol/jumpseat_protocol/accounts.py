"""``account.*`` and ``session.gitHubAuth.*``: logins to the Copilot API, of the process and of sessions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import Field, StrictBool

from jumpseat_protocol.server import SuccessResult
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.wire import Method, WireModel


class SessionAuthStatusResult(WireModel):
    """``host`` is a URL, such as ``https://github.com``."""

    is_authenticated: StrictBool
    auth_type: str | None = None
    host: str | None = None
    login: str | None = None
    copilot_plan: str | None = None
    status_message: str | None = None


class AuthCredentials(WireModel):
    """A login for a session. ``copilot_user`` is GitHub's record of the user, if the client has it."""

    type: Literal["token", "env", "gh-cli", "user", "hmac", "api-key", "copilot-api-token", "account"]
    host: str | None = None
    login: str | None = None
    token: str | None = Field(default=None, repr=False)
    copilot_user: dict[str, Any] | None = None


class SetCredentialsParams(WireModel):
    """Nothing changes without ``credentials``."""

    session_id: str
    credentials: AuthCredentials | None = None


class AccountGetQuotaParams(WireModel):
    """``git_hub_token`` selects another account than that of the process."""

    selection_id: str | None = None
    git_hub_token: str | None = Field(default=None, repr=False)


class AccountQuotaSnapshot(WireModel):
    """The quota of one kind of request. ``entitlement_requests`` is -1 if unlimited; ``reset_date`` is ISO 8601."""

    is_unlimited_entitlement: StrictBool
    entitlement_requests: int
    used_requests: int
    remaining_percentage: float
    usage_allowed_with_exhausted_quota: StrictBool
    overage: float
    overage_allowed_with_exhausted_quota: StrictBool
    reset_date: str | None = None


class AccountGetQuotaResult(WireModel):
    """The quotas by kind of request: ``chat``, ``completions``, ``premium_interactions``, or newer kinds."""

    quota_snapshots: dict[str, AccountQuotaSnapshot]


METHODS: Final[Mapping[str, Method]] = {
    "account.getQuota": Method(AccountGetQuotaParams, AccountGetQuotaResult),
    "session.gitHubAuth.getStatus": Method(SessionParams, SessionAuthStatusResult),
    "session.gitHubAuth.setCredentials": Method(SetCredentialsParams, SuccessResult),
    "session.auth.getStatus": Method(SessionParams, SessionAuthStatusResult),
}
