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
    """Whether there is a login."""
    auth_type: str | None = None
    """Where the login comes from."""
    host: str | None = None
    login: str | None = None
    copilot_plan: str | None = None
    """The Copilot plan of the user."""
    status_message: str | None = None
    """What people can be told about it."""


class AuthCredentials(WireModel):
    """A login for a session. ``copilot_user`` is GitHub's record of the user, if the client has it."""

    type: Literal["token", "env", "gh-cli", "user", "hmac", "api-key", "copilot-api-token", "account"]
    host: str | None = None
    login: str | None = None
    env_var: str | None = None
    """The environment variable that the token is from."""
    token: KeyText | None = Field(default=None, repr=False)
    """The token."""
    copilot_user: dict[str, Any] | None = None
    """GitHub's record of the user."""


class AuthInfo(WireModel):
    """A login, and where it comes from. ``copilot_user`` is GitHub's record of the user.

    ``token`` is required by SDKs for some types, and empty: no response contains the token of a login, except those
    of ``account.getAllUsers``. ``env_var`` is the environment variable that has the token.
    """

    type: str
    host: str | None = None
    login: str | None = None
    env_var: str | None = None
    """The environment variable that the token is from."""
    token: KeyText | None = Field(default=None, repr=False)
    """The token; empty in responses."""
    copilot_user: dict[str, Any] | None = None
    """GitHub's record of the user."""


class CurrentAuthResult(WireModel):
    """The login of the process, if any; ``auth_errors`` tell why it is not accepted."""

    auth_info: AuthInfo | None = None
    """The login."""
    auth_errors: list[str] | None = None
    """Why a login is not accepted."""


class AccountLoginParams(WireModel):
    """Without ``login``, GitHub is asked for the user to whom the token belongs."""

    host: str = Field(min_length=1)
    token: KeyText = Field(min_length=1, repr=False)
    """The token."""
    login: str | None = None


class AccountLoginResult(WireModel):
    """``stored_in_vault`` is true once the token is stored: in the keyring, otherwise in a private file."""

    stored_in_vault: StrictBool
    """Whether the token is stored."""


class AccountLogoutParams(WireModel):
    """The login to remove, by its id or by its host and name."""

    selection_id: str | None = None
    """The id of the login."""
    auth_info: AuthInfo | None = None
    """The login, by its host and name."""


class AccountLogoutResult(WireModel):
    has_more_users: StrictBool
    """Whether another login is left."""


class StoredAccount(WireModel):
    """A login in the keyring. ``token`` is missing if the keyring does not give it."""

    auth_info: AuthInfo
    """The login."""
    selection_id: str
    """The id of the login."""
    token: KeyText | None = Field(default=None, repr=False)
    """The token, if the keyring gives it."""


class SessionLoginParams(WireModel):
    """A login for a session; with ``persist``, it is stored as well."""

    session_id: str
    host: str = Field(min_length=1)
    login: str = Field(min_length=1)
    token: KeyText = Field(min_length=1, repr=False)
    """The token."""
    persist: StrictBool = False
    """Whether the login is stored."""


class SessionSwitchParams(WireModel):
    """The login that a session uses from now on; without ``token``, the stored one of that host and name."""

    session_id: str
    auth_info: AuthInfo
    """The login to use."""
    token: KeyText | None = Field(default=None, repr=False)
    """The token; without it, the stored one."""


class SessionLogoutUserParams(WireModel):
    session_id: str
    auth_info: AuthInfo
    """The login to remove."""


class SetCredentialsResult(WireModel):
    """``copilot_user_resolved`` tells whether GitHub's record of the user came with the credentials."""

    success: StrictBool = True
    copilot_user_resolved: StrictBool | None = None
    """Whether GitHub's record of the user came with the credentials."""


class SetCredentialsParams(WireModel):
    """Nothing changes without ``credentials``."""

    session_id: str
    credentials: AuthCredentials | None = None
    """The login to use."""


class AccountGetQuotaParams(WireModel):
    """``git_hub_token`` selects another account than that of the process."""

    selection_id: str | None = None
    """The id of the login."""
    git_hub_token: KeyText | None = Field(default=None, repr=False)


class AccountQuotaSnapshot(WireModel):
    """The quota of one kind of request. ``entitlement_requests`` is -1 if unlimited; ``reset_date`` is ISO 8601."""

    is_unlimited_entitlement: StrictBool
    """Whether there is no limit."""
    entitlement_requests: int
    """How many requests the plan includes."""
    used_requests: int
    """How many were used."""
    remaining_percentage: Number
    """How much is left, from 0 to 100."""
    usage_allowed_with_exhausted_quota: StrictBool
    """Whether requests are answered when nothing is left."""
    overage: Number
    """How many requests were used beyond the plan."""
    overage_allowed_with_exhausted_quota: StrictBool
    """Whether requests beyond the plan are allowed."""
    reset_date: str | None = None
    """When the count begins anew, in ISO 8601."""


class AccountGetQuotaResult(WireModel):
    """The quotas by kind of request: ``chat``, ``completions``, ``premium_interactions``, or newer kinds."""

    quota_snapshots: dict[str, AccountQuotaSnapshot]
    """The quotas by kind of request."""


METHODS: Final[Mapping[str, Method]] = {
    "account.getQuota": Method(
        AccountGetQuotaParams, AccountGetQuotaResult, "Return what a Copilot plan has left."
    ),
    "account.getCurrentAuth": Method(EmptyParams, CurrentAuthResult, "Return the login of the process."),
    "account.getAllUsers": Method(EmptyParams, list[StoredAccount], "List the stored logins."),
    "account.login": Method(AccountLoginParams, AccountLoginResult, "Check and store a login of GitHub."),
    "account.logout": Method(AccountLogoutParams, AccountLogoutResult, "Remove a stored login."),
    "session.gitHubAuth.getStatus": Method(
        SessionParams, SessionAuthStatusResult, "Return the login of the session."
    ),
    "session.gitHubAuth.setCredentials": Method(
        SetCredentialsParams, SetCredentialsResult, "Give the session a login, without storing it."
    ),
    "session.gitHubAuth.getCurrentAuthInfo": Method(
        SessionParams, AuthInfo | None, "Return the login of the session."
    ),
    "session.gitHubAuth.getAllAuthAvailable": Method(
        SessionParams, list[SessionAuthStatusResult], "List the logins that the session could use."
    ),
    "session.gitHubAuth.lastAuthErrors": Method(SessionParams, list[str], "Return why logins were not accepted."),
    "session.gitHubAuth.login": Method(
        SessionLoginParams, AuthInfo, "Give the session a login, and store it if asked to."
    ),
    "session.gitHubAuth.logout": Method(SessionParams, bool, "Remove the login of the session."),
    "session.gitHubAuth.logoutUser": Method(SessionLogoutUserParams, bool, "Remove a stored login."),
    "session.gitHubAuth.refreshCopilotUser": Method(
        SessionParams, AuthInfo | None, "Ask GitHub for the user's record again."
    ),
    "session.gitHubAuth.switchToAuth": Method(SessionSwitchParams, None, "Use another login in the session."),
    "session.auth.getStatus": Method(SessionParams, SessionAuthStatusResult, "Return the login of the session."),
}
