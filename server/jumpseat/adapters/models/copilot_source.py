"""The models of the Copilot API and the logins they are called with.

``copilot_accounts.py`` caches accounts and their models; ``copilot_login.py`` defines the logins.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, Protocol

from msgspec.structs import replace

from jumpseat.adapters.models.connections import Connections, user_agent
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.model import ModelInfo
from jumpseat.errors import ConfigError, ProviderAuthError

if TYPE_CHECKING:
    from jumpseat.adapters.models.copilot_accounts import CopilotAccounts
    from jumpseat.agent.blocks import JsonObject
    from jumpseat.agent.settings import Login, SessionSettings
    from jumpseat.options import Options
    from jumpseat_protocol.accounts import AccountQuotaSnapshot, AuthCredentials, SessionAuthStatusResult
    from jumpseat_protocol.callbacks import GitHubTokenResult

NO_SOCKETS: Final = "COPILOT_CLI_DISABLE_WEBSOCKET_RESPONSES"

AUTO: Final = "auto"
"""The name of the model that lets the API choose one."""


class StoredLogins(Protocol):
    """The logins that people have stored."""

    async def all(self) -> Sequence[Login]:
        """Return all logins, the current one first."""
        ...

    async def current(self) -> Login | None:
        """Return the login in use."""
        ...


class CopilotSource:
    """The Copilot API as a source of models. Nothing is requested from GitHub before a login is needed."""

    def __init__(
        self, options: Options, connections: Connections, stored: StoredLogins | None = None, *, borrows: bool
    ) -> None:
        """With ``borrows``, the login of the GitHub CLI is used if the process has none of its own.

        ``stored`` are the logins that people have stored, which come before that.
        """
        self._options = options
        self._environ = options.environ
        self._connections = connections
        self._borrows = borrows
        self._borrowed: Login | None = None
        self._stored = stored
        self._uses_stored = options.auto_login

    # --- logins ---------------------------------------------------------------------------------------------------

    @cached_property
    def login_of_environment(self) -> Login | None:
        """The login from the options and environment of the process, if any."""
        from jumpseat.adapters.models.copilot_login import login_of_environment

        return login_of_environment(self._options)

    async def own_login(self) -> Login | None:
        """Return the login of the process, if any: its own, a stored one, or that of the GitHub CLI.

        Raises:
            StoreError: the stored logins cannot be read.
        """
        if self.login_of_environment is not None:
            return self.login_of_environment
        if self._uses_stored and self._stored is not None and (login := await self._stored.current()):
            return login
        if self._borrowed is None and self._borrows:
            from jumpseat.adapters.models.copilot_login import login_of_gh

            self._borrowed = await login_of_gh(self._connections.child_environment.variables())
        return self._borrowed

    async def login_of_session(self, login: Login | None) -> Login | None:
        """Return the login of a session that has ``login`` of its own, or that of the process.

        The login of the machine counts only for clients that use it; the token that was passed at start always
        does.
        """
        if login is not None:
            return login
        if not self._uses_stored and self._options.auth_token is None:
            return None
        return await self.own_login()

    def use_stored(self) -> None:
        """Use the stored logins, after a client has logged in, also with ``--no-auto-login``."""
        self._uses_stored = True

    async def all_logins(self) -> list[Login]:
        """Return the login of the process and all stored logins."""
        own = await self.own_login()
        stored: Sequence[Login] = () if self._stored is None else await self._stored.all()
        return [*filter(None, [own]), *(login for login in stored if login is not own)]

    async def name_of(self, host: str, token: str) -> str:
        """Return the user to whom a token belongs, as GitHub reports it.

        Raises:
            ProviderAuthError: the token is invalid.
            ProviderError: GitHub cannot be reached.
        """
        from jumpseat.adapters.models.copilot_login import TokenLogin

        return str((await self._accounts.user(TokenLogin(token, host=host), refresh=True)).get("login") or "")

    async def user(self, login: Login, *, refresh: bool = False) -> JsonObject:
        """Return GitHub's description of the user of ``login``.

        Raises:
            ProviderError: the token is invalid, or GitHub cannot be reached.
        """
        return await self._accounts.user(login, refresh=refresh)

    def login_with_token(self, token: str) -> Login:
        """Return a login with a GitHub token, which is not verified."""
        from jumpseat.adapters.models.copilot_login import TokenLogin, host_of_environment

        return TokenLogin(token, host=host_of_environment(self._environ))

    def login_by_asking(
        self, ask: Callable[[str, Literal["initial", "refresh"]], Awaitable[GitHubTokenResult]]
    ) -> Login:
        """Return a login with tokens provided by a client: ``ask`` is called with the host and the reason."""
        from jumpseat.adapters.models.copilot_login import ClientLogin, host_of_environment

        host = host_of_environment(self._environ)
        return ClientLogin(lambda reason: ask(host, reason), host)

    def login_of(self, credentials: AuthCredentials) -> Login:
        """Return the login described by a client's credentials.

        Raises:
            InvalidRequestError: the type of the credentials is not supported, or their token is missing.
        """
        from jumpseat.adapters.models.copilot_login import host_of_environment, login_of

        return login_of(credentials, host_of_environment(self._environ))

    async def authenticate(self, settings: SessionSettings) -> None:
        """Verify a session's own login, if it has one.

        Raises:
            ProviderAuthError: the token is missing or invalid.
        """
        if settings.login is None:
            return
        if settings.options.provider is None:
            await self._accounts.user(settings.login, refresh=True)
        else:
            # The session uses another provider; GitHub is not needed and may be unreachable.
            await settings.login.token()

    async def mcp_endpoint(self, settings: SessionSettings) -> tuple[str, str]:
        """Return the address of GitHub's MCP server at the site of a session's login, and the login's token.

        Raises:
            ProviderAuthError: the session has no login.
            ProviderError: GitHub cannot be reached.
        """
        login = await self.login_of_session(settings.login)
        if login is None:
            raise ProviderAuthError("the session has no GitHub login")
        account = await self._accounts.account(login)
        return f"{await account.api_url()}/mcp", await login.token()

    async def status(self, login: Login | None) -> SessionAuthStatusResult:
        """Return the status of ``login``."""
        from jumpseat_protocol.accounts import SessionAuthStatusResult

        if login is None:
            return SessionAuthStatusResult(is_authenticated=False, status_message="Not authenticated")
        return await self._accounts.status(login)

    async def quota(self, login: Login | None = None) -> dict[str, AccountQuotaSnapshot]:
        """Return the remaining quota of ``login``, or of the login of the process.

        Raises:
            ProviderAuthError: there is no login, or its token is invalid.
            ProviderError: GitHub cannot be reached.
        """
        login = login or await self.own_login()
        if login is None:
            raise ProviderAuthError("Not authenticated: there is no GitHub token")
        return await self._accounts.quota(login)

    # --- models ---------------------------------------------------------------------------------------------------

    async def models(self, login: Login, *, refresh: bool = False) -> list[ModelInfo]:
        """Return the models available to ``login``.

        Raises:
            ProviderError: the API cannot be reached.
        """
        return await (await self._accounts.account(login)).models(refresh=refresh)

    async def resolve(self, login: Login, name: str | None, settings: SessionSettings) -> ResolvedModel:
        """Return the model called ``name``, or else the first enabled one, called with ``login``.

        Raises:
            ConfigError: no model is enabled, or the model's API is not supported.
            ProviderError: the API cannot be reached.
        """
        from jumpseat.adapters.providers.copilot import has_socket, wire_of

        account = await self._accounts.account(login)
        models = await account.models()
        if name is None:
            name = next((model.id for model in models if model.enabled), None)
            if name is None:
                raise ConfigError("the Copilot API lists no usable model")
        # Unlisted names are tried all the same, because lists lag behind.
        info = next((model for model in models if model.id == name), None)
        listed, info = info is not None, info or ModelInfo(id=name)
        # The API requires clients of its own protocol to identify themselves.
        agent = f"{user_agent(settings.options.client_name)} (Copilot API)"
        endpoint = replace(await account.endpoint(), user_agent=agent)
        wire = wire_of(info)
        if wire is None:
            served = ", ".join(info.wires or ())
            raise ConfigError(f"the Copilot API serves model {name!r} only by unsupported endpoints: {served}")
        socket = has_socket(info) and self._may_use_sockets(settings)

        async def find_auto() -> str | None:
            # Fetched again, because the model may have been enabled since; this is called rarely.
            listed = await account.models(refresh=True)
            return AUTO if any(model.id == AUTO and model.enabled for model in listed) else None

        return ResolvedModel(
            self._connections.built_in(wire, endpoint, socket=socket),
            name,
            info,
            byok=False,
            listed=listed,
            find_auto=find_auto if name != AUTO else None,
        )

    def _may_use_sockets(self, settings: SessionSettings) -> bool:
        """Return whether to use WebSockets: if a client makes the requests, unless they are turned off."""
        return (
            self._connections.tunnel is not None
            and self._environ.get(NO_SOCKETS) != "true"
            and settings.options.capi.enable_web_socket_responses is not False
        )

    @cached_property
    def _accounts(self) -> CopilotAccounts:
        from jumpseat.adapters.models.copilot_accounts import CopilotAccounts

        return CopilotAccounts(self._environ, self._connections.transport(), user_agent(None))
