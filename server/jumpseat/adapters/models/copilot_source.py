"""The models of the Copilot API, and who they are called as. Accounts and their lists are kept by
``copilot_accounts.py``; where logins come from, ``copilot_login.py`` says.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal

from jumpseat.adapters.models.connections import Connections, user_agent
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.model import ModelInfo
from jumpseat.errors import ConfigError, ProviderAuthError

if TYPE_CHECKING:
    from jumpseat.adapters.models.copilot_accounts import CopilotAccounts
    from jumpseat.agent.login import Login
    from jumpseat.agent.settings import SessionSettings
    from jumpseat.cli import Options
    from jumpseat_protocol.accounts import AccountQuotaSnapshot, AuthCredentials, SessionAuthStatusResult
    from jumpseat_protocol.callbacks import GitHubTokenResult

SOCKETS: Final = "COPILOT_EXP_COPILOT_CLI_WEBSOCKET_RESPONSES"
NO_SOCKETS: Final = "COPILOT_CLI_DISABLE_WEBSOCKET_RESPONSES"

AUTO: Final = "auto"
"""The model by which the API chooses one itself."""


class CopilotSource:
    """The Copilot API as one source of models. GitHub is asked when somebody is to be logged in, never before."""

    def __init__(self, options: Options, connections: Connections, *, borrows: bool) -> None:
        """With ``borrows`` the login of the GitHub CLI is taken where the process has none of its own."""
        self._options = options
        self._environ = options.environ
        self._connections = connections
        self._borrows = borrows
        self._borrowed: Login | None = None

    # --- logins ---------------------------------------------------------------------------------------------------

    @cached_property
    def login_of_environment(self) -> Login | None:
        """Who the environment says the process is."""
        from jumpseat.adapters.models.copilot_login import login_of_environment

        return login_of_environment(self._options)

    async def own_login(self) -> Login | None:
        """Who the process is."""
        if self.login_of_environment is not None or not self._borrows:
            return self.login_of_environment
        if self._borrowed is None:
            from jumpseat.adapters.models.copilot_login import login_of_gh

            self._borrowed = await login_of_gh(self._environ)
        return self._borrowed

    def login_with_token(self, token: str) -> Login:
        """The login of a GitHub token, which is not checked yet."""
        from jumpseat.adapters.models.copilot_login import GivenLogin, host_of_environment

        return GivenLogin(token, host=host_of_environment(self._environ))

    def login_by_asking(
        self, ask: Callable[[str, Literal["initial", "refresh"]], Awaitable[GitHubTokenResult]]
    ) -> Login:
        """The login of a client that gives tokens: ``ask`` is told the host they are for, and why it is asked."""
        from jumpseat.adapters.models.copilot_login import AskedLogin, host_of_environment

        host = host_of_environment(self._environ)
        return AskedLogin(lambda reason: ask(host, reason), host)

    def login_of(self, credentials: AuthCredentials) -> Login:
        """The login that a client describes.

        Raises:
            InvalidRequestError: it is of a kind that cannot be used here.
        """
        from jumpseat.adapters.models.copilot_login import host_of_environment, login_of

        return login_of(credentials, host_of_environment(self._environ))

    async def authenticate(self, settings: SessionSettings) -> None:
        """Check the login that a session brings of its own.

        Raises:
            ProviderAuthError: there is no token, or it is not good.
        """
        if settings.login is None:
            return
        if settings.provider is None:
            await self._accounts.user(settings.login, refresh=True)
        else:
            # GitHub has nothing to say about such a session, and may be out of its reach.
            await settings.login.token()

    async def status(self, login: Login | None = None) -> SessionAuthStatusResult:
        """As whom the Copilot API is called: ``login``, else that of the process."""
        from jumpseat_protocol.accounts import SessionAuthStatusResult

        login = login or await self.own_login()
        if login is None:
            return SessionAuthStatusResult(is_authenticated=False, status_message="Not authenticated")
        return await self._accounts.status(login)

    async def quota(self, login: Login | None = None) -> dict[str, AccountQuotaSnapshot]:
        """What an account has left: that of ``login``, else that of the process.

        Raises:
            ProviderAuthError: there is no login, or its token is not good.
            ProviderError: GitHub cannot be asked.
        """
        login = login or await self.own_login()
        if login is None:
            raise ProviderAuthError("Not authenticated: there is no GitHub token")
        return await self._accounts.quota(login)

    # --- models ---------------------------------------------------------------------------------------------------

    async def models(self, login: Login, *, refresh: bool = False) -> list[ModelInfo]:
        """The models that ``login`` can see.

        Raises:
            ProviderError: the API could not be asked.
        """
        return await (await self._accounts.account(login)).models(refresh=refresh)

    async def resolve(self, login: Login, name: str | None, settings: SessionSettings) -> ResolvedModel:
        """The model called ``name``, else the first that can be used, called as ``login``.

        Raises:
            ConfigError: there is none, or none that can be called from here.
            ProviderError: the API could not be asked.
        """
        from jumpseat.adapters.providers.copilot import has_socket, wire_of

        account = await self._accounts.account(login)
        models = await account.models()
        if name is None:
            name = next((one.id for one in models if one.enabled), None)
            if name is None:
                raise ConfigError("the Copilot API lists no usable model")
        # Names that are in no list are tried all the same: lists lag behind.
        info = next((one for one in models if one.id == name), ModelInfo(id=name))
        # The API wants to be told that its own protocol is spoken.
        agent = f"{user_agent(settings.client_name)} (Copilot API)"
        endpoint = replace(await account.endpoint(), user_agent=agent)
        wire = wire_of(info)
        if wire is None:
            served = ", ".join(info.wires or ())
            raise ConfigError(f"the Copilot API serves model {name!r} by none of our wires, but by {served}")
        socket = has_socket(info) and self._may_use_sockets(settings)

        async def find_auto() -> str | None:
            # It may have come since the list was had, and is looked for only now and then.
            listed = await account.models(refresh=True)
            return AUTO if any(one.id == AUTO and one.enabled for one in listed) else None

        return ResolvedModel(
            self._connections.plain(wire, endpoint, socket=socket),
            name,
            info,
            byok=False,
            find_auto=find_auto if name != AUTO else None,
        )

    def _may_use_sockets(self, settings: SessionSettings) -> bool:
        """WebSockets are for those who ask for them, and made by the client that makes the requests."""
        if self._connections.tunnel is None or self._environ.get(NO_SOCKETS) == "true":
            return False
        wanted = settings.web_sockets
        return self._environ.get(SOCKETS) == "true" if wanted is None else wanted

    @cached_property
    def _accounts(self) -> CopilotAccounts:
        from jumpseat.adapters.models.copilot_accounts import CopilotAccounts

        return CopilotAccounts(self._environ, self._connections.transport(), user_agent(None))
