"""Who a session is to a provider whose models are behind an account."""

from __future__ import annotations

from typing import Protocol

from jumpseat.agent.blocks import JsonObject


class Login(Protocol):
    """One identity. ``host`` is the URL of the site that knows it, ``name`` and ``facts`` are what it knows.

    ``auth_type`` is the protocol's word for where it comes from.
    """

    @property
    def auth_type(self) -> str: ...

    @property
    def host(self) -> str: ...

    @property
    def name(self) -> str | None: ...

    @property
    def facts(self) -> JsonObject | None: ...

    async def token(self) -> str:
        """The secret that stands for it now. Never to be kept: another one may be given the next time.

        Raises:
            ProviderAuthError: there is none.
        """
        ...
