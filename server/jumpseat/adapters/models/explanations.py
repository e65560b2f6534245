"""Explain failed model calls of sessions as ``jumpseat check`` does: with variable, address and model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from jumpseat.adapters.models.diagnosis import Diagnosis, Facts, diagnose
from jumpseat.adapters.models.known_adapters import known_adapter, place_of
from jumpseat.adapters.providers import PROVIDERS, canonical_type
from jumpseat_protocol.structs import Discreet

if TYPE_CHECKING:
    from jumpseat.adapters.models.configured import ConfiguredAdapters
    from jumpseat.adapters.models.entered_keys import KeyedEnvironment
    from jumpseat.errors import ProviderError
    from jumpseat_protocol.sessions import ProviderConfig

PROXIES: Final = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy")
"""The environment variables that name proxies."""

ADAPTER_PROXY: Final = "the adapter's --proxy"


class Explanations(Discreet, Struct, frozen=True):
    """Explains failed calls to the models of configured adapters, of session providers, and of the Copilot API."""

    hidden = ("environ",)
    adapters: ConfiguredAdapters
    environ: KeyedEnvironment

    def of_adapter(self, name: str, model: str, error: ProviderError) -> str:
        """Explain a failed call of ``model`` through the adapter ``name``."""
        return self.diagnose_adapter(name, model, error).text

    def diagnose_adapter(self, name: str, model: str, error: ProviderError) -> Diagnosis:
        """Diagnose a failed call of ``model`` through the adapter ``name``."""
        known = known_adapter(self.adapters, name, self.environ)
        key_env = known.key_env if known is not None else None
        key = self.environ.get(key_env, "").strip() if key_env is not None else ""
        address = known.address if known is not None else None
        facts = Facts(
            adapter=name,
            model=model,
            # A declared address may have placeholders, which are not filled in here.
            address=address if address is not None and "${" not in address else name,
            key_env=key_env,
            has_key=bool(key),
            malformed_key=is_malformed(key),
            key_source="the key that you have entered" if key_env in self.environ.entered() else None,
            proxy_envs=(ADAPTER_PROXY,) if known is not None and known.has_proxy else proxies_in(self.environ),
            command=f"jumpseat check {name}" if self.adapters.find(name) is not None else None,
            in_session=True,
        )
        return diagnose(error, facts)

    def of_provider(self, provider: ProviderConfig, model: str, error: ProviderError) -> str:
        """Explain a failed call of ``model`` at a provider that a client has given to its session."""
        kind = canonical_type(provider.type)
        default = PROVIDERS[kind].default_base_url if kind in PROVIDERS else None
        credentials = (provider.api_key, provider.bearer_token, provider.api_key_command, provider.headers)
        facts = Facts(
            adapter=provider.type,
            model=model,
            address=place_of(provider.base_url or default) or provider.type,
            # A declared adapter may have its own key.
            has_key=any(credentials) or bool(provider.has_bearer_token_provider) or kind not in PROVIDERS,
            proxy_envs=proxies_in(self.environ),
            key_source="the key of the session's provider",
            in_session=True,
        )
        return diagnose(error, facts).text

    def of_account(self, model: str, error: ProviderError) -> str:
        """Explain a failed call of ``model`` by the Copilot API."""
        facts = Facts(
            adapter="copilot",
            model=model,
            address="the Copilot API",
            has_key=True,
            proxy_envs=proxies_in(self.environ),
            key_source="the GitHub token",
            command="jumpseat check copilot",
            in_session=True,
        )
        return diagnose(error, facts).text


def proxies_in(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the variables that name proxies."""
    return tuple(variable for variable in PROXIES if environ.get(variable))


def is_malformed(key: str) -> bool:
    """Return whether a key contains quotes or spaces, which are not part of a key."""
    return any(character in "\"'" or character.isspace() for character in key)
