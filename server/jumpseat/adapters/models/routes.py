"""The base URLs of configured providers, which clients may change for the lifetime of the process."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from jumpseat.adapters.models.configured import ConfiguredAdapters
from jumpseat.adapters.providers import PROVIDERS, canonical_type, environment_providers
from jumpseat.config import AdapterConfig
from jumpseat.errors import InvalidRequestError
from jumpseat.parsing.validation import WEB_ADDRESS


class ProviderRoute(Struct, frozen=True):
    """The base URL of a provider; ``None`` if the provider is not used."""

    name: str
    api_type: str
    base_url: str | None


class Routes:
    """The routes of all configured adapters."""

    def __init__(self, adapters: ConfiguredAdapters) -> None:
        self._adapters = adapters

    def list(self) -> list[ProviderRoute]:
        """Return the providers whose requests clients can redirect: those with a protocol known to clients."""
        names = dict.fromkeys(
            [*self._adapters.unredirected, *environment_providers(fallback=False), *self._adapters.configured]
        )
        return [route for name in names if (route := self._of(name)) is not None]

    def set(self, name: str, base_url: str, headers: Mapping[str, str]) -> None:
        """Send the requests of a provider to ``base_url`` with these headers, without the configured key.

        Raises:
            InvalidRequestError: ``base_url`` is not an http or https URL.
        """
        if not WEB_ADDRESS.match(base_url):
            # The URL is left out, because it may contain a password.
            raise InvalidRequestError("baseUrl is not a valid URL, expected http://... or https://...")
        adapters = self._adapters
        old = adapters.configured.get(name) or adapters.unredirected.get(name) or AdapterConfig()
        new = old.model_copy(update={"base_url": base_url, "api_key_env": None, "headers": dict(headers)})
        adapters.redirected[name] = new

    def switch_off(self, name: str) -> None:
        """Stop using a provider; does nothing if there is no such provider."""
        self._adapters.redirected[name] = None

    def reset(self) -> None:
        """Restore the routes of the operator's configuration."""
        self._adapters.redirected.clear()

    def _of(self, name: str) -> ProviderRoute | None:
        adapter = self._adapters.configured.get(name)
        known = adapter or self._adapters.unredirected.get(name) or AdapterConfig()
        kind = canonical_type(known.type or name)
        family = PROVIDERS[kind].family if kind in PROVIDERS else None
        if family is None or not self._adapters.is_undeclared(name, known):
            return None
        base_url = adapter and (adapter.base_url or PROVIDERS[kind].default_base_url)
        return ProviderRoute(name, family, base_url or None)
