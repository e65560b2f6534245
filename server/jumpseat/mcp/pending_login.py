"""A login to a server that continues in the background while the user's browser is open."""

from __future__ import annotations

import logging
from collections.abc import Callable

import anyio

from jumpseat.errors import InvalidRequestError
from jumpseat.mcp.loading import load
from jumpseat.mcp.tokens import LoginTokens
from jumpseat_protocol.mcp_servers import McpServerConfig

log = logging.getLogger(__name__)


class PendingLogin:
    """A login to the server ``name``, whose tokens are saved in ``logins``.

    ``client_id`` takes precedence over that of ``config``. ``success_text`` is what the browser shows after
    the login. ``on_end`` is called after a successful login, and if the server requires none.
    """

    def __init__(
        self,
        name: str,
        config: McpServerConfig,
        logins: LoginTokens,
        on_end: Callable[[], None],
        *,
        client_name: str | None,
        client_id: str | None,
        client_secret: str | None,
        success_text: str | None,
    ) -> None:
        self._name = name
        self._url = config.url or ""
        self._logins = logins
        self._on_end = on_end
        self._client_name = client_name
        self._client_id = client_id or config.oauth_client_id
        self._client_secret = client_secret
        self._success_text = success_text
        self._address: str | None = None
        self._problem: str | None = None
        # Set once the address is known, or the login has ended without one.
        self._progressed = anyio.Event()

    async def run(self) -> None:
        """Log in and save the tokens; failures are logged."""
        await load("jumpseat.mcp.login")
        from jumpseat.mcp.login import LoginFailedError, log_in

        try:
            login = await log_in(
                self._url,
                self._show,
                client_id=self._client_id,
                client_secret=self._client_secret,
                client_name=self._client_name,
                success_text=self._success_text,
            )
            if login is not None:
                await self._logins.save(self._url, login)
            self._on_end()
        except LoginFailedError as error:
            log.warning("MCP server %s: %s", self._name, error)
            self._problem = str(error)
        finally:
            self._progressed.set()

    async def address(self) -> str | None:
        """Wait for the address that the user has to open, and return it; ``None`` if the server requires no login.

        Raises:
            InvalidRequestError: the login failed before there was an address.
        """
        await self._progressed.wait()
        if self._address is None and self._problem is not None:
            raise InvalidRequestError(f"MCP server {self._name!r}: {self._problem}")
        return self._address

    async def _show(self, address: str) -> None:
        self._address = address
        self._progressed.set()
