"""The providers that a user can set up: those found on this machine, and those that need a key.

Servers on this machine are asked for their models; nothing else is requested over the network.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, Literal, TypeAlias

import anyio
from msgspec import Struct

from jumpseat.adapters.models.configured import TRIAL, local_server
from jumpseat.adapters.models.known_adapters import COPILOT, KnownAdapter, known_adapter, place_of
from jumpseat.adapters.models.resolver import Models
from jumpseat.adapters.provider import SCRIPTED
from jumpseat.adapters.providers import PROVIDERS, canonical_type, environment_providers
from jumpseat.adapters.setup.config_edit import add_adapter, set_default_model
from jumpseat.agent.settings import SessionSettings
from jumpseat.config import AdapterConfig
from jumpseat.errors import InvalidRequestError, JumpseatError
from jumpseat.parsing.validation import base_url_problem
from jumpseat.store.user.provider_keys import KeyPlace, ProviderKeys
from jumpseat_protocol.members import nearest

Kind: TypeAlias = Literal["key", "local", "copilot", "configured"]
KeySource: TypeAlias = Literal["environment", "keyring", "file"]

PROBE_S: Final = 1.5
"""Time limit for a server on this machine to list its models."""

_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,63}")

_KEY_TEXTS: Final[dict[KeySource, str]] = {
    "environment": "{} is set",
    "keyring": "its key is in the keyring",
    "file": "its key is in a private file",
}


class FoundProvider(Struct, frozen=True, kw_only=True):
    """A provider, and its state on this machine; see ``SetupProvider`` of the protocol."""

    name: str
    title: str
    kind: Kind
    ready: bool
    detail: str
    key_from: KeySource | None = None
    key_variable: str | None = None
    address: str | None = None
    models: int | None = None


class Setup(Struct, frozen=True):
    """Changes the keys and the configuration of a process, also as far as it runs already.

    ``home`` is the folder of the configuration file.
    """

    models: Models
    keys: ProviderKeys
    home: Path

    async def providers(self) -> list[FoundProvider]:
        """Return all providers, the ready ones first."""
        by_type = environment_providers()
        configured = [self._configured(name) for name in self.models.adapters.configured if name not in by_type]
        local = [name for name, info in by_type.items() if info.local]
        found: dict[str, FoundProvider] = {}

        async def ask(name: str) -> None:
            found[name] = await self._local(name)

        copilot = await self._copilot()
        async with anyio.create_task_group() as tasks:
            for name in local:
                tasks.start_soon(ask, name)
        keyed = [self._keyed(name) for name in by_type if name not in local]
        everything = [*configured, *keyed, copilot, *(found[name] for name in local)]
        return sorted(everything, key=lambda provider: not provider.ready)

    def default_model(self, cwd: Path) -> str | None:
        """Return the model of a session without one, as far as it is known without a request."""
        return self.models.default_id(SessionSettings(cwd=cwd))

    async def has_model(self) -> bool:
        """Return whether a session without a model gets one."""
        adapters = self.models.adapters
        if adapters.default_model is not None or adapters.default() is not None:
            return True
        return await self.models.copilot.own_login() is not None

    # --- changes --------------------------------------------------------------------------------------------------

    async def put_key(self, provider: str, key: str) -> tuple[KeyPlace, str | None]:
        """Store the key of a provider; return where it is, and the variable that takes precedence over it, if any.

        Raises:
            InvalidRequestError: the provider is unknown or takes no key, or the text is no key.
            StoreError: the key cannot be stored.
        """
        variable = self.variable_of(provider)
        place = await self.keys.put(variable, key)
        return place, variable if variable not in self.models.environ.entered() else None

    async def remove_key(self, provider: str) -> bool:
        """Remove the key that was entered for a provider; return whether there was one.

        Raises:
            InvalidRequestError: the provider is unknown or takes no key.
            StoreError: the file cannot be written.
        """
        return await self.keys.remove(self.variable_of(provider))

    def add_server(self, name: str, base_url: str, kind: str, *, needs_key: bool) -> Path:
        """Add a server of the user's own to the configuration file, and return the path of the file.

        Raises:
            InvalidRequestError: the name is taken or invalid, or the address or the type is invalid.
            ConfigError: the file cannot be changed.
        """
        if not _NAME.fullmatch(name) or name in (TRIAL, SCRIPTED) or canonical_type(name) in PROVIDERS:
            raise InvalidRequestError(
                f"invalid name {name!r}: expected a new name of lower-case letters, digits, - and _"
            )
        if kind not in PROVIDERS:
            raise InvalidRequestError(f"unknown type {kind!r}, expected one of {', '.join(PROVIDERS)}")
        if (problem := base_url_problem(base_url, kind)) is not None:
            raise InvalidRequestError(f"baseUrl: {problem}")
        table = {"type": kind, "base_url": base_url}
        if needs_key:
            table["api_key_env"] = f"{name.upper().replace('-', '_')}_API_KEY"
        add_adapter(self.home, name, table)
        self.models.adapters.add(name, AdapterConfig.model_validate(table))
        return self.home / "config.toml"

    def set_model(self, model: str) -> Path:
        """Make ``model`` the default one, here and in the configuration file, and return the path of the file.

        Raises:
            ConfigError: the file cannot be changed.
        """
        provider, slash, _ = model.partition("/")
        adapters = self.models.adapters
        found = adapters.fallback.get(provider) or local_server(provider)
        if slash and provider not in adapters.configured and found is not None:
            self._add_found(provider, found)
        set_default_model(self.home, model)
        adapters.use_default(model)
        return self.home / "config.toml"

    def _add_found(self, provider: str, found: AdapterConfig) -> None:
        """Write the table of a provider that was found in the environment or on this machine.

        With it, the provider is known where it is not found, and its models are not taken for those of a gateway.
        """
        known = {"base_url": found.base_url, "api_key_env": found.api_key_env}
        table = {"type": provider, **{key: value for key, value in known.items() if value is not None}}
        add_adapter(self.home, provider, table)
        self.models.adapters.add(provider, AdapterConfig.model_validate(table))

    def variable_of(self, provider: str) -> str:
        """Return the environment variable that the key of a provider takes the place of.

        Raises:
            InvalidRequestError: the provider is unknown or takes no key.
        """
        if provider == COPILOT:
            raise InvalidRequestError("a login to GitHub takes the place of a key: account.login")
        known = self._known(provider)
        if known is None or known.problem:
            names = [*dict.fromkeys((*self.models.adapters.configured, *environment_providers(), COPILOT))]
            found = nearest(provider, names)
            hint = f"expected one of {', '.join(names)}" if found is None else f"did you mean {found!r}?"
            raise InvalidRequestError(f"unknown provider {provider!r}, {hint}")
        if (variable := self._variable(provider, known)) is None:
            raise InvalidRequestError(f"the provider {provider!r} takes no key, or has it from elsewhere")
        return variable

    # --- parts ----------------------------------------------------------------------------------------------------

    def _known(self, name: str) -> KnownAdapter | None:
        return known_adapter(self.models.adapters, name, self.models.environ)

    def _variable(self, name: str, known: KnownAdapter | None) -> str | None:
        """Return the variable of a provider's key, ``None`` if it takes none."""
        if known is not None and known.key_env is not None:
            return known.key_env
        # An address in the environment needs no key, but takes one.
        by_environment = name in PROVIDERS and name not in self.models.config.adapters
        return PROVIDERS[name].key_variable if by_environment else None

    def _key_source(self, variable: str | None) -> KeySource | None:
        if variable is None or variable not in self.models.environ:
            return None
        return self.keys.places()[variable] if variable in self.models.environ.entered() else "environment"

    def _configured(self, name: str) -> FoundProvider:
        known = self._known(name)
        if known is None:
            return FoundProvider(
                name=name,
                title=name,
                kind="configured",
                ready=False,
                detail="its declaration is invalid: jumpseat adapters shows why",
            )
        source = self._key_source(known.key_env)
        needs_key = known.key_env is not None and source is None
        return FoundProvider(
            name=name,
            title=name,
            kind="configured",
            ready=not needs_key,
            detail=f"configured, but without its key ({known.key_env})" if needs_key else "configured",
            key_from=source,
            key_variable=known.key_env,
            address=known.address,
        )

    def _keyed(self, name: str) -> FoundProvider:
        info = PROVIDERS[name]
        known = self._known(name)
        variable = self._variable(name, known)
        source = self._key_source(variable)
        usable = source is not None or name in {**self.models.adapters.configured, **self.models.adapters.fallback}
        return FoundProvider(
            name=name,
            title=info.title or name,
            kind="key",
            ready=usable,
            detail=_KEY_TEXTS[source].format(variable) if source else "configured" if usable else "needs a key",
            key_from=source,
            key_variable=variable,
            address=known.address if known is not None else place_of(info.default_base_url),
        )

    async def _local(self, name: str) -> FoundProvider:
        info, known = PROVIDERS[name], self._known(name)
        address = known.address if known is not None else info.default_base_url
        models: list[str] | None = None
        with anyio.move_on_after(PROBE_S):
            try:
                models = await self.models.catalogue.probe(name)
            except JumpseatError:
                # Something else may listen at that port.
                models = None
        shown = f"{len(models)} model{'' if len(models) == 1 else 's'} at {address}" if models is not None else ""
        variable = self._variable(name, known)
        return FoundProvider(
            name=name,
            title=info.title or name,
            kind="local",
            ready=bool(models),
            detail=shown or f"nothing answers at {address}",
            key_from=self._key_source(variable),
            key_variable=variable,
            address=address,
            models=None if models is None else len(models),
        )

    async def _copilot(self) -> FoundProvider:
        try:
            login = await self.models.copilot.own_login()
        except JumpseatError:
            login = None
        if login is None:
            detail = "needs a login to GitHub and a subscription"
        else:
            detail = f"logged in as {login.name}" if login.name else f"logged in to {login.host}"
        return FoundProvider(
            name=COPILOT, title="GitHub Copilot", kind="copilot", ready=login is not None, detail=detail
        )
