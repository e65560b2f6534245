"""GitHub identities, which provide the token for the Copilot API.

The process has one (:func:`login_of_environment`, else :func:`login_of_gh`). A session may have its own, with a
fixed token (:class:`TokenLogin`) or with tokens requested from its client as they expire (:class:`ClientLogin`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from subprocess import DEVNULL
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import anyio
from msgspec import Struct

from jumpseat.adapters.providers.copilot import PROVIDER
from jumpseat.agent.blocks import JsonObject
from jumpseat.errors import ClientCallError, InvalidRequestError, ProviderAuthError
from jumpseat_protocol.callbacks import GitHubTokenResult
from jumpseat_protocol.structs import Discreet

if TYPE_CHECKING:
    from jumpseat.options import Options
    from jumpseat_protocol.accounts import AuthCredentials

log = logging.getLogger(__name__)

GITHUB: Final = "https://github.com"
HOST_VARIABLES: Final = ("COPILOT_GH_HOST", "GH_HOST")
COPILOT_API: Final = "copilot-api-token"
"""The type of a token that is accepted by the Copilot API but not by GitHub."""

REFRESH_S: Final = 3600.0
"""A token that expires within this time is replaced before its next use."""
TOKEN_TIMEOUT_S: Final = 60.0
"""Time limit for a client to provide a token; some clients ask a person."""
RETRY_S: Final = 60.0
"""Delay before the client is asked again after it failed to replace a token that is still valid."""
_GH_S: Final = 5.0

Reason: TypeAlias = Literal["initial", "refresh"]
AskGitHubToken: TypeAlias = Callable[[Reason], Awaitable[GitHubTokenResult]]


class TokenLogin(Discreet, Struct, frozen=True):
    """An identity with a fixed token; ``secret`` is ``None`` for a user of whom only the name is known."""

    hidden = ("secret", "facts")
    secret: str | None
    auth_type: str = "token"
    host: str = GITHUB
    name: str | None = None
    facts: JsonObject | None = None
    variable: str | None = None

    async def token(self) -> str:
        """See :meth:`jumpseat.agent.settings.Login.token`."""
        if self.secret is None:
            raise ProviderAuthError(f"the credentials of {self.name or 'the session'!r} contain no token")
        return _sendable(self.secret)


class ClientLogin:
    """An identity with temporary tokens from the client.

    A token is requested at the first use, and again at a use within an hour of its expiry; an idle session requests
    nothing. A token that cannot be replaced is used until it expires.
    """

    def __init__(
        self,
        ask: AskGitHubToken,
        host: str,
        *,
        now: Callable[[], float] = time.time,
        timeout_s: float = TOKEN_TIMEOUT_S,
    ) -> None:
        """``now`` returns Unix time in seconds, which advances while the machine sleeps."""
        self.auth_type = "token-provider"
        self.host = host
        self.name: str | None = None
        self.facts: JsonObject | None = None
        self.variable: str | None = None
        self._ask = ask
        self._now = now
        self._timeout_s = timeout_s
        self._token: str | None = None
        self._expires_at = 0.0
        self._ask_at = 0.0
        # Concurrent requests share one request for a token.
        self._lock = anyio.Lock()

    async def token(self) -> str:
        """See :meth:`jumpseat.agent.settings.Login.token`."""
        async with self._lock:
            if self._token is not None and self._now() < self._ask_at:
                return self._token
            try:
                self._token, lasts_s = await self._acquire("initial" if self._token is None else "refresh")
            except ProviderAuthError as error:
                if self._token is None or self._now() >= self._expires_at:
                    self._token = None
                    raise
                log.warning("%s; the previous token is still valid", error)
                self._ask_at = min(self._now() + RETRY_S, self._expires_at)
            else:
                self._expires_at = self._now() + lasts_s
                self._ask_at = self._expires_at - REFRESH_S
            return self._token

    async def _acquire(self, reason: Reason) -> tuple[str, float]:
        try:
            with anyio.fail_after(self._timeout_s):
                answer = await self._ask(reason)
        except TimeoutError:
            raise ProviderAuthError(f"the client provided no GitHub token within {self._timeout_s:g} s") from None
        except ClientCallError as error:
            # Imported here: every server asks for the login of its environment with the first session.
            from jumpseat.adapters.failures import Redactor

            raise ProviderAuthError(f"the client provided no GitHub token: {Redactor()(str(error))}") from None
        if answer.kind == "cancelled":
            raise ProviderAuthError("the client provided no GitHub token: the request was cancelled")
        if not answer.access_token or not answer.expires_in:
            raise ProviderAuthError("the client's GitHub token needs accessToken and expiresIn")
        if (answer.token_type or "bearer").lower() != "bearer":
            raise ProviderAuthError("the client's GitHub token must be of tokenType 'bearer'")
        return _sendable(answer.access_token), answer.expires_in


def login_of(credentials: AuthCredentials, host: str) -> TokenLogin:
    """Return the login described by ``credentials``; ``host`` is used if they name no host.

    Raises:
        InvalidRequestError: the type of the credentials is not supported, or their token is missing.
    """
    kind = credentials.type
    if kind not in ("token", "env", "gh-cli", "user"):
        raise InvalidRequestError(
            f"credentials.type {kind!r} is not supported, expected one of 'token', 'env', 'gh-cli', 'user'"
        )
    if kind != "user" and not credentials.token:
        raise InvalidRequestError(f"credentials.token is required for credentials.type {kind!r}")
    return TokenLogin(
        credentials.token,
        kind,
        credentials.host or host,
        credentials.login,
        credentials.copilot_user,
        credentials.env_var,
    )


def host_of_environment(environ: Mapping[str, str]) -> str:
    """Return the URL of the GitHub site named by the environment, by default github.com."""
    named = next((environ[name] for name in HOST_VARIABLES if environ.get(name)), None)
    return host_url(named) if named else GITHUB


def host_url(host: str) -> str:
    """Return ``host``, a URL or a bare host name, as a URL."""
    return (host if "://" in host else f"https://{host}").rstrip("/")


def login_of_environment(options: Options) -> TokenLogin | None:
    """Return the identity of the process: the token passed at start, else the first one in the environment.

    Tokens that happen to be in the environment are left alone with ``--no-auto-login``.
    """
    environ = options.environ
    host = host_of_environment(environ)
    if options.auth_token:
        return TokenLogin(options.auth_token, "token", host)
    if not options.auto_login:
        return None
    if environ.get("COPILOT_API_URL") and (token := environ.get("GITHUB_COPILOT_API_TOKEN")):
        return TokenLogin(token, COPILOT_API, host)
    name = next((name for name in PROVIDER.key_variables if environ.get(name)), None)
    return TokenLogin(environ[name], "env", host, variable=name) if name else None


async def login_of_gh(environ: Mapping[str, str]) -> TokenLogin | None:
    """Return the identity of the GitHub CLI, or ``None`` if it is not installed or not logged in."""
    # Imported here: most processes have another login.
    from jumpseat.system.programs import find_program

    # The server is often started in the folder of a project.
    gh = find_program("gh", environ, [Path.cwd()])
    if gh is None:
        return None
    host = host_of_environment(environ)
    command = [gh, "auth", "token", "--hostname", host.partition("://")[2]]
    try:
        with anyio.fail_after(_GH_S):
            done = await anyio.run_process(
                command, stdin=DEVNULL, stderr=DEVNULL, check=False, env=dict(environ), start_new_session=True
            )
    except (OSError, TimeoutError) as error:
        log.info("no token from gh: %s", type(error).__name__)
        return None
    token = done.stdout.decode("ascii", "replace").strip()
    return TokenLogin(token, "gh-cli", host) if done.returncode == 0 and token else None


def _sendable(token: str) -> str:
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ProviderAuthError("invalid GitHub token: expected printable ASCII characters without spaces")
    return token
