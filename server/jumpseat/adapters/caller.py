"""What stands between a model and its HTTP call: making the call ready, and hearing how it went."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import anyio

from jumpseat.adapters.adapter import Endpoint, Network, PreparedCall
from jumpseat.agent.model import Capabilities, ModelRequest
from jumpseat.errors import ProviderAuthError

if TYPE_CHECKING:
    from jumpseat.declared.env import EnvResolver


class Caller(Protocol):
    """Makes the calls of one model ready."""

    @property
    def adapter_name(self) -> str:
        """What the adapter is called."""
        ...

    @property
    def signs_as(self) -> str:
        """What blocks carry in ``provider`` that are this adapter's own."""
        ...

    @property
    def wire_name(self) -> str:
        """The adapter that comes with the server whose wire this is; its own name where it is none."""
        ...

    @property
    def endpoint(self) -> Endpoint:
        """Where and as whom the model is called, as far as that is known before a call."""
        ...

    def capabilities(self, model: str) -> Capabilities:
        """What can be asked of ``model``."""
        ...

    async def whereabouts(self) -> tuple[Endpoint, Network | None]:
        """Where, as whom and how the models are called, as things are now.

        Raises:
            ConfigError: a value that this needs is nowhere.
        """
        ...

    def for_text(self) -> Caller:
        """The same for calls that want a text and nothing else."""
        ...

    async def begin(self, request: ModelRequest) -> PreparedCall:
        """Make one call ready. May look secrets up, and ask clients for them.

        Raises:
            ProviderError: no token could be had, or the adapter refused.
            ConfigError: a value that the call needs is nowhere.
            TypeError, ValueError: the request cannot be written.
        """
        ...


@dataclass(frozen=True, slots=True)
class AskedToken:
    """Asks a client for the bearer token of ``provider``.

    Nothing is kept: the client knows when a token is spent.
    """

    provider: str
    ask: Callable[[str], Awaitable[str]] | None
    patience_s: float = 60.0

    async def __call__(self) -> str:
        """
        Raises:
            ProviderAuthError: there is no client, or it gave no token, or not in time.
        """
        if self.ask is None:
            raise ProviderAuthError(f"there is no client to ask for the bearer token of provider {self.provider!r}")
        try:
            with anyio.fail_after(self.patience_s):
                answer = await self.ask(self.provider)
        except TimeoutError:
            raise ProviderAuthError(
                f"the client gave no bearer token for provider {self.provider!r} within {self.patience_s:g} s"
            ) from None
        except Exception as error:
            reason = str(error) or type(error).__name__
            raise ProviderAuthError(
                f"the client gave no bearer token for provider {self.provider!r}: {reason}"
            ) from error
        if not (token := answer.strip()):
            raise ProviderAuthError(f"the client gave an empty bearer token for provider {self.provider!r}")
        return token


@dataclass(frozen=True, slots=True)
class PrintedKey:
    """Runs the command that prints the key of ``provider``, as its session has said it.

    Nothing is kept: who gives a command rather than a key has keys that are soon spent.
    """

    provider: str
    command: str
    resolver: EnvResolver

    async def __call__(self) -> str:
        """
        Raises:
            ProviderAuthError: it fails, prints nothing, or takes too long.
        """
        found = await self.resolver.printed(self.command)
        if isinstance(found, str):
            return found
        raise ProviderAuthError(f"there is no key for provider {self.provider!r}: {found.reason}")
