"""The interface between a model and its HTTP calls, and credentials that are looked up for each call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

import anyio
from msgspec import Struct

from jumpseat.adapters.adapter import Endpoint, Network, PreparedCall
from jumpseat.agent.model import Capabilities, ModelRequest
from jumpseat.errors import ProviderAuthError

if TYPE_CHECKING:
    from jumpseat.declared.env import EnvResolver


class Caller(Protocol):
    """Prepares the calls of one model."""

    @property
    def adapter_name(self) -> str:
        """The name of the adapter."""
        ...

    @property
    def signs_as(self) -> str:
        """The signature that the adapter's own blocks carry in ``provider``."""
        ...

    @property
    def wire_name(self) -> str:
        """The provider type whose wire this is; the adapter's own name if it has a wire of its own."""
        ...

    @property
    def endpoint(self) -> Endpoint:
        """The address and credentials, as far as they are known before a call."""
        ...

    def capabilities(self, model: str) -> Capabilities:
        """Return the capabilities of ``model``."""
        ...

    async def resolve_endpoint(self) -> tuple[Endpoint, Network | None]:
        """Return the current address, credentials and network settings.

        Raises:
            ConfigError: a required value is missing.
        """
        ...

    def for_text(self) -> Caller:
        """Return a caller for requests that need a text answer and nothing else."""
        ...

    async def prepare(self, request: ModelRequest) -> PreparedCall:
        """Prepare one call. May look up secrets, and ask clients for them.

        Raises:
            ProviderError: no token is available, or the adapter refused.
            ConfigError: a required value is missing.
            TypeError, ValueError: the request cannot be written.
        """
        ...


class ClientToken(Struct, frozen=True):
    """Asks a client for the bearer token of ``provider``.

    Tokens are not kept: the client knows when they expire.
    """

    provider: str
    ask: Callable[[str], Awaitable[str]] | None
    timeout_s: float = 60.0

    async def __call__(self) -> str:
        """Ask for the token.

        Raises:
            ProviderAuthError: there is no client, or it did not send a token in time.
        """
        if self.ask is None:
            raise ProviderAuthError(f"no client can provide the bearer token of provider {self.provider!r}")
        try:
            with anyio.fail_after(self.timeout_s):
                answer = await self.ask(self.provider)
        except TimeoutError:
            raise ProviderAuthError(
                f"the client returned no bearer token for provider {self.provider!r} within {self.timeout_s:g} s"
            ) from None
        except Exception as error:
            reason = str(error) or type(error).__name__
            raise ProviderAuthError(
                f"the client returned no bearer token for provider {self.provider!r}: {reason}"
            ) from error
        if not (token := answer.strip()):
            raise ProviderAuthError(f"the client returned an empty bearer token for provider {self.provider!r}")
        return token


class CommandKey(Struct, frozen=True):
    """Runs the command of a session that prints the key of ``provider``.

    Keys are not kept: a command stands for keys that expire soon.
    """

    provider: str
    command: str
    resolver: EnvResolver

    async def __call__(self) -> str:
        """Run the command and return the key.

        Raises:
            ProviderAuthError: the command fails, prints nothing, or takes too long.
        """
        found = await self.resolver.run_command(self.command)
        if isinstance(found, str):
            return found
        raise ProviderAuthError(f"no key for provider {self.provider!r}: {found.reason}")
