"""A session's GitHub identity, for providers whose models need an account."""

from __future__ import annotations

from typing import Protocol

from jumpseat.agent.blocks import JsonObject


class Login(Protocol):
    """An account on GitHub. ``host`` is the URL of the site, ``name`` the user's login.

    ``facts`` are further properties of the account that the site returned. ``auth_type`` is the protocol's word for
    the origin of the credentials.
    """

    @property
    def auth_type(self) -> str: ...

    @property
    def host(self) -> str: ...

    @property
    def name(self) -> str | None: ...

    @property
    def variable(self) -> str | None:
        """The environment variable that has the token."""
        ...

    @property
    def facts(self) -> JsonObject | None: ...

    async def token(self) -> str:
        """Return the current token. Callers must not store it, since the next call may return another one.

        Raises:
            ProviderAuthError: no token is available.
        """
        ...
