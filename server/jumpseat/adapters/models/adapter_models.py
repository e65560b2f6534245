"""Create callable models of the adapters that can be named."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.models.configured import ConfiguredAdapters, model_variable, plain_offer
from jumpseat.adapters.models.connections import Connections, user_agent
from jumpseat.adapters.models.entered_keys import KeyedEnvironment
from jumpseat.adapters.models.given_provider import GIVEN
from jumpseat.adapters.provider import SCRIPTED, Offer
from jumpseat.adapters.providers import PROVIDERS, canonical_type
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.config import AdapterConfig, ModelConfig
from jumpseat.errors import ConfigError
from jumpseat.parsing.validation import base_url_problem


class AdapterModels(Struct, frozen=True):
    """Creates models of adapters.

    Keys are read from ``environ`` when a model is created, and stored nowhere else.
    """

    adapters: ConfiguredAdapters
    connections: Connections
    environ: KeyedEnvironment

    async def create(
        self, name: str, model: str | None, client_name: str | None = None, cwd: Path | None = None
    ) -> ResolvedModel:
        """Create a model of the adapter ``name``; without ``model``, its first one.

        Raises:
            ConfigError: the adapter is unknown, or has no model where none is named.
        """
        name = canonical_type(name)
        if cwd is not None and self.adapters.is_of_project(name, cwd):
            return await self.create_of_project(name, model, client_name, cwd)
        config = self.adapters.find(name)
        if config is None and name not in PROVIDERS:
            return await self._of_declared(name, model, client_name)
        return await self.make(name, config or AdapterConfig(), model, client_name)

    async def make(
        self, name: str, config: AdapterConfig, model: str | None, client_name: str | None
    ) -> ResolvedModel:
        """Create a model of the adapter configured by ``config``; without ``model``, its first one.

        Raises:
            ConfigError: a base URL, a key or a model is missing.
        """
        if not self.adapters.is_undeclared(name, config):
            return await self._of_declared(name, model, client_name)
        kind = canonical_type(config.type or name)
        declared = self.adapters.models_of(name, config)
        if model is None and declared:
            model = declared[0].id
        if kind == SCRIPTED:
            model = model or SCRIPTED
        if model is None:
            raise _no_models(name)
        known = next((config for config in declared if config.id == model), ModelConfig(id=model))
        offer = plain_offer(name, known)
        info = replace(
            offer.info,
            tool_protocol=offer.info.tool_protocol or config.tool_protocol,
            edit_tools=offer.info.edit_tools or config.edit_tools,
        )
        if kind == SCRIPTED:
            # Scripted models are named without a prefix.
            return ResolvedModel(self.connections.scripted(config.script), model, replace(info, id=model))
        await self.environ.load()
        endpoint = self._endpoint(name, kind, config, client_name)
        return ResolvedModel(self.connections.built_in(kind, endpoint, signs_as=name), offer.wire_name, info)

    def _endpoint(self, name: str, kind: str, config: AdapterConfig, client_name: str | None) -> Endpoint:
        provider = PROVIDERS[kind]
        base_url = config.base_url or provider.default_base_url
        if not base_url:
            raise self.adapters.error(name, "base_url: required, but missing")
        if (problem := base_url_problem(base_url, kind)) is not None:
            raise self.adapters.error(name, f"base_url: {problem}")
        if (problem := provider.load().unknown_option(config.options)) is not None:
            raise self.adapters.error(name, problem)
        key_env = config.api_key_env or (None if config.base_url else provider.key_variable)
        api_key = self.environ.get(key_env) if key_env else None
        if key_env in self.environ and api_key is None:
            raise ConfigError(
                f"the key of {name!r} is no longer in the keyring: enter it again with jumpseat setup"
            )
        if config.api_key_env and api_key is None:
            problem = f"api_key_env: the environment variable {config.api_key_env!r} is not set"
            raise self.adapters.error(name, problem)
        return Endpoint(
            base_url=base_url.rstrip("/"),
            # A key read from a file may end in a line break.
            api_key=api_key.strip() if api_key else api_key,
            headers=config.headers,
            user_agent=user_agent(client_name),
            options=config.options,
        )

    async def create_of_project(
        self, name: str, model: str | None, client_name: str | None, cwd: Path
    ) -> ResolvedModel:
        """Create a model of an adapter declared by the project of ``cwd``.

        Raises:
            ConfigError: the declaration is invalid, or has no models where none is named.
        """
        return await self._of_declared(name, model, client_name, cwd)

    async def _of_declared(
        self, name: str, model: str | None, client_name: str | None, cwd: Path | None = None
    ) -> ResolvedModel:
        await self.environ.load()
        known = self.adapters.get_callable(name, await self.adapters.catalogue.get_ready(name, cwd))
        offer = find_offer(known.offers(), model)
        if offer is None:
            if model is None:
                raise _no_models(name)
            offer = known.offer_unlisted(model)
        endpoint = Endpoint(base_url="", user_agent=user_agent(client_name), options=known.declaration.options)
        return ResolvedModel(self.connections.declared(known, {}, endpoint), offer.wire_name, offer.info)


def find_offer(offers: list[Offer], name: str | None) -> Offer | None:
    """Return the offer with that id, else the one with that name at the provider; without a name, the first."""
    if name is None:
        return offers[0] if offers else None
    exact = (offer for offer in offers if offer.id == name)
    return next(exact, None) or next((offer for offer in offers if offer.wire_name == name), None)


def _no_models(name: str) -> ConfigError:
    variable = "COPILOT_MODEL" if name == GIVEN else model_variable(name)
    setting = f"{variable} or default_model" if variable else "default_model"
    return ConfigError(f"adapter {name!r} declares no models: name a model, or set {setting}")
