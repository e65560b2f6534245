"""GitHub identities: where the token for the Copilot API comes from.

The process has one (:func:`login_of_environment`, else :func:`login_of_gh`); a session may have its own, with a
token that was given (:class:`GivenLogin`) or one that its client is asked for whenever it runs out
(:class:`AskedLogin`).
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from subprocess import DEVNULL
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import anyio

from jumpseat.adapters.failures import Redactor
from jumpseat.agent.blocks import JsonObject
from jumpseat.errors import ClientCallError, InvalidRequestError, ProviderAuthError
from jumpseat_protocol.accounts import AuthCredentials
from jumpseat_protocol.callbacks import GitHubTokenResult

if TYPE_CHECKING:
    from jumpseat.cli import Options

log = logging.getLogger(__name__)

GITHUB: Final = "https://github.com"
HOST_VARIABLES: Final = ("COPILOT_GH_HOST", "GH_HOST")
TOKEN_VARIABLES: Final = ("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN")
OF_THE_API: Final = "copilot-api-token"
"""The type of a token that the Copilot API knows and GitHub does not."""

REFRESH_S: Final = 3600.0
"""A token that has no more than this left is replaced before it is used again."""
PATIENCE_S: Final = 60.0
"""How long a client may take to give a token; some ask a person."""
RETRY_S: Final = 60.0
"""How long a token that could not be replaced is used before the client is asked again."""
_GH_S: Final = 5.0

Reason: TypeAlias = Literal["initial", "refresh"]
AskGitHubToken: TypeAlias = Callable[[Reason], Awaitable[GitHubTokenResult]]


@dataclass(frozen=True, slots=True)
class GivenLogin:
    """A token that stays what it is; ``None`` for a user of whom only the name was told."""

    secret: str | None = field(repr=False)
    auth_type: str = "token"
    host: str = GITHUB
    name: str | None = None
    facts: JsonObject | None = field(default=None, repr=False)

    async def token(self) -> str:
        """See :meth:`jumpseat.agent.login.Login.token`."""
        if self.secret is None:
            raise ProviderAuthError(f"the credentials of {self.name or 'the session'!r} hold no token")
        return _sendable(self.secret)


class AskedLogin:
    """A token that the client gives for a while.

    It is asked for once at first and again when it has an hour or less left, always because somebody needs it:
    nothing happens in a session that is idle. A token that could not be replaced serves for as long as it lasts.
    """

    def __init__(
        self,
        ask: AskGitHubToken,
        host: str,
        *,
        now: Callable[[], float] = time.time,
        patience_s: float = PATIENCE_S,
    ) -> None:
        """``now`` is Unix time in seconds, which goes on while the machine sleeps."""
        self.auth_type = "token-provider"
        self.host = host
        self.name: str | None = None
        self.facts: JsonObject | None = None
        self._ask = ask
        self._now = now
        self._patience_s = patience_s
        self._token: str | None = None
        self._expires_at = 0.0
        self._ask_at = 0.0
        # Several requests that need a token at once ask once.
        self._lock = anyio.Lock()

    async def token(self) -> str:
        """See :meth:`jumpseat.agent.login.Login.token`."""
        async with self._lock:
            if self._token is not None and self._now() < self._ask_at:
                return self._token
            try:
                self._token, lasts_s = await self._acquire("initial" if self._token is None else "refresh")
            except ProviderAuthError as error:
                if self._token is None or self._now() >= self._expires_at:
                    self._token = None
                    raise
                log.warning("%s; the one before is still good", error)
                self._ask_at = min(self._now() + RETRY_S, self._expires_at)
            else:
                self._expires_at = self._now() + lasts_s
                self._ask_at = self._expires_at - REFRESH_S
            return self._token

    async def _acquire(self, reason: Reason) -> tuple[str, float]:
        try:
            with anyio.fail_after(self._patience_s):
                answer = await self._ask(reason)
        except TimeoutError:
            raise ProviderAuthError(f"the client gave no GitHub token within {self._patience_s:g} s") from None
        except ClientCallError as error:
            raise ProviderAuthError(f"the client gave no GitHub token: {Redactor()(str(error))}") from None
        if answer.kind == "cancelled":
            raise ProviderAuthError("the client gave no GitHub token: it was cancelled")
        if not answer.access_token or not answer.expires_in:
            raise ProviderAuthError("the client's GitHub token needs accessToken and expiresIn")
        if (answer.token_type or "bearer").lower() != "bearer":
            raise ProviderAuthError("the client's GitHub token must be of tokenType 'bearer'")
        return _sendable(answer.access_token), answer.expires_in


def login_of(credentials: AuthCredentials, host: str) -> GivenLogin:
    """The login that ``credentials`` describe; ``host`` is that of the process, for those that name none.

    Raises:
        InvalidRequestError: they are of a kind that this server cannot use, or lack their token.
    """
    kind = credentials.type
    if kind not in ("token", "env", "gh-cli", "user"):
        raise InvalidRequestError(
            f"credentials.type {kind!r} is not supported, expected one of 'token', 'env', 'gh-cli', 'user'"
        )
    if kind != "user" and not credentials.token:
        raise InvalidRequestError(f"credentials.token is required for credentials.type {kind!r}")
    return GivenLogin(
        credentials.token,
        kind,
        host_url(credentials.host) if credentials.host else host,
        credentials.login,
        credentials.copilot_user,
    )


def host_of_environment(environ: Mapping[str, str]) -> str:
    """The URL of the GitHub site that the environment names, of the public one where it names none."""
    named = next((environ[name] for name in HOST_VARIABLES if environ.get(name)), None)
    return host_url(named) if named else GITHUB


def host_url(host: str) -> str:
    """``host`` as a URL; it may be a bare name."""
    return (host if "://" in host else f"https://{host}").rstrip("/")


def login_of_environment(options: Options) -> GivenLogin | None:
    """The identity of the process: what its host gave it, else the first token of the environment."""
    environ = options.environ
    host = host_of_environment(environ)
    if options.auth_token:
        return GivenLogin(options.auth_token, "token", host)
    if environ.get("COPILOT_API_URL") and (token := environ.get("GITHUB_COPILOT_API_TOKEN")):
        return GivenLogin(token, OF_THE_API, host)
    token = next((environ[name] for name in TOKEN_VARIABLES if environ.get(name)), None)
    return GivenLogin(token, "env", host) if token else None


async def login_of_gh(environ: Mapping[str, str]) -> GivenLogin | None:
    """The identity that the GitHub CLI is logged in with; ``None`` where it is not, or not there."""
    gh = shutil.which("gh", path=environ.get("PATH", ""))
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
        log.info("gh gave no token: %s", type(error).__name__)
        return None
    token = done.stdout.decode("ascii", "replace").strip()
    return GivenLogin(token, "gh-cli", host) if done.returncode == 0 and token else None


def _sendable(token: str) -> str:
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ProviderAuthError("the GitHub token is not one: expected printable ASCII without blanks")
    return token
