"""``account.*`` and ``session.gitHubAuth.*``: logins to the Copilot API, of the process and of sessions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import Field, StrictBool

from jumpseat_protocol.limits import KeyText
from jumpseat_protocol.server import EmptyParams
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.wire import Method, Number, WireModel


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
    env_var: str | None = None
    token: KeyText | None = Field(default=None, repr=False)
    copilot_user: dict[str, Any] | None = None


class AuthInfo(WireModel):
    """A login, and where it comes from. ``copilot_user`` is GitHub's record of the user.

    ``token`` is required by SDKs for some types, and empty: no response contains the token of a login, except those
    of ``account.getAllUsers``. ``env_var`` is the environment variable that has the token.
    """

    type: str
    host: str | None = None
    login: str | None = None
    env_var: str | None = None
    token: KeyText | None = Field(default=None, repr=False)
    copilot_user: dict[str, Any] | None = None


class CurrentAuthResult(WireModel):
    """The login of the process, if any; ``auth_errors`` tell why it is not accepted."""

    auth_info: AuthInfo | None = None
    auth_errors: list[str] | None = None


class AccountLoginParams(WireModel):
    """Without ``login``, GitHub is asked for the user to whom the token belongs."""

    host: str = Field(min_length=1)
    token: KeyText = Field(min_length=1, repr=False)
    login: str | None = None


class AccountLoginResult(WireModel):
    """``stored_in_vault`` is true once the token is stored: in the keyring, otherwise in a private file."""

    stored_in_vault: StrictBool


class AccountLogoutParams(WireModel):
    """The login to remove, by its id or by its host and name."""

    selection_id: str | None = None
    auth_info: AuthInfo | None = None


class AccountLogoutResult(WireModel):
    has_more_users: StrictBool


class StoredAccount(WireModel):
    """A login in the keyring. ``token`` is missing if the keyring does not give it."""

    auth_info: AuthInfo
    selection_id: str
    token: KeyText | None = Field(default=None, repr=False)


class SessionLoginParams(WireModel):
    """A login for a session; with ``persist``, it is stored as well."""

    session_id: str
    host: str = Field(min_length=1)
    login: str = Field(min_length=1)
    token: KeyText = Field(min_length=1, repr=False)
    persist: StrictBool = False


class SessionSwitchParams(WireModel):
    """The login that a session uses from now on; without ``token``, the stored one of that host and name."""

    session_id: str
    auth_info: AuthInfo
    token: KeyText | None = Field(default=None, repr=False)


class SessionLogoutUserParams(WireModel):
    session_id: str
    auth_info: AuthInfo


class SetCredentialsResult(WireModel):
    """``copilot_user_resolved`` tells whether GitHub's record of the user came with the credentials."""

    success: StrictBool = True
    copilot_user_resolved: StrictBool | None = None


class SetCredentialsParams(WireModel):
    """Nothing changes without ``credentials``."""

    session_id: str
    credentials: AuthCredentials | None = None


class AccountGetQuotaParams(WireModel):
    """``git_hub_token`` selects another account than that of the process."""

    selection_id: str | None = None
    git_hub_token: KeyText | None = Field(default=None, repr=False)


class AccountQuotaSnapshot(WireModel):
    """The quota of one kind of request. ``entitlement_requests`` is -1 if unlimited; ``reset_date`` is ISO 8601."""

    is_unlimited_entitlement: StrictBool
    entitlement_requests: int
    used_requests: int
    remaining_percentage: Number
    usage_allowed_with_exhausted_quota: StrictBool
    overage: Number
    overage_allowed_with_exhausted_quota: StrictBool
    reset_date: str | None = None


class AccountGetQuotaResult(WireModel):
    """The quotas by kind of request: ``chat``, ``completions``, ``premium_interactions``, or newer kinds."""

    quota_snapshots: dict[str, AccountQuotaSnapshot]


METHODS: Final[Mapping[str, Method]] = {
    "account.getQuota": Method(AccountGetQuotaParams, AccountGetQuotaResult),
    "account.getCurrentAuth": Method(EmptyParams, CurrentAuthResult),
    "account.getAllUsers": Method(EmptyParams, list[StoredAccount]),
    "account.login": Method(AccountLoginParams, AccountLoginResult),
    "account.logout": Method(AccountLogoutParams, AccountLogoutResult),
    "session.gitHubAuth.getStatus": Method(SessionParams, SessionAuthStatusResult),
    "session.gitHubAuth.setCredentials": Method(SetCredentialsParams, SetCredentialsResult),
    "session.gitHubAuth.getCurrentAuthInfo": Method(SessionParams, AuthInfo | None),
    "session.gitHubAuth.getAllAuthAvailable": Method(SessionParams, list[SessionAuthStatusResult]),
    "session.gitHubAuth.lastAuthErrors": Method(SessionParams, list[str]),
    "session.gitHubAuth.login": Method(SessionLoginParams, AuthInfo),
    "session.gitHubAuth.logout": Method(SessionParams, bool),
    "session.gitHubAuth.logoutUser": Method(SessionLogoutUserParams, bool),
    "session.gitHubAuth.refreshCopilotUser": Method(SessionParams, AuthInfo | None),
    "session.gitHubAuth.switchToAuth": Method(SessionSwitchParams, None),
    "session.auth.getStatus": Method(SessionParams, SessionAuthStatusResult),
}
