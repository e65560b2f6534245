"""List all models with their capabilities, limits and prices, from all sources.

Field by field, the configuration takes precedence over the provider's list (``model_lists.py``), and that over the
built-in facts (``known_models.py``). Providers are asked only when the list is requested.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final

import anyio
from msgspec import Struct
from msgspec.structs import replace

from jumpseat.adapters.models.adapter_models import AdapterModels, find_offer
from jumpseat.adapters.models.configured import Offered, no_model_configured
from jumpseat.adapters.models.copilot_source import CopilotSource
from jumpseat.adapters.provider import SCRIPTED, Offer
from jumpseat.adapters.providers import PROVIDERS
from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model import ModelInfo
from jumpseat.config import AdapterConfig, AliasConfig
from jumpseat.errors import ConfigError, JumpseatError, ProviderError

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from jumpseat.adapters.models.known_models import KnownModels
    from jumpseat.adapters.models.model_lists import ListEndpoint, ModelLists
    from jumpseat.agent.interfaces import ResolvedModel
    from jumpseat.agent.settings import Login

log = logging.getLogger(__name__)

_LOCAL_KINDS: Final = ("openai_compatible", "openai", "openai_responses", "anthropic")
"""The types of providers that local servers speak, besides those that are local themselves."""


class ModelCatalogue(Struct, dict=True):
    """The list of all models.

    ``aliases`` are those of the configuration. A request for the list waits at most ``timeout_s`` for providers;
    requests to providers continue in ``tasks`` after that. A prompt waits at most ``question_s`` for what a local
    server says of its model.
    """

    aliases: Mapping[str, AliasConfig]
    models: AdapterModels
    copilot: CopilotSource
    tasks: TaskGroup | None
    timeout_s: float
    question_s: float = 1.0
    _lists: ModelLists | None = None

    async def list(self, login: Login | None = None, *, refresh: bool = False) -> list[ModelInfo]:
        """Return all models that can be named; those of the Copilot API as seen by ``login``, if given.

        Raises:
            ConfigError: there is neither a login nor a configured provider.
            ProviderError: the request to the Copilot API failed.
        """
        adapters = self.models.adapters
        if login is None and not adapters.is_set_by_environment():
            login = await self.copilot.own_login()
        configured = {**adapters.configured, **adapters.registered}
        fallback = {**adapters.fallback, **adapters.installed()}
        found: dict[str, list[ModelInfo]] = {}
        copilot: list[ModelInfo] | JumpseatError | TimeoutError = []

        async def look_up(name: str, config: AdapterConfig, if_incomplete: bool) -> None:
            found[name] = await self._of(name, config, if_incomplete=if_incomplete, refresh=refresh)

        async with anyio.create_task_group() as tasks:
            for name, config in configured.items():
                tasks.start_soon(look_up, name, config, True)
            for name, config in fallback.items():
                tasks.start_soon(look_up, name, config, login is None and not adapters.configured)
            if login is not None:
                copilot = await self._of_copilot(login, refresh=refresh)
        if isinstance(copilot, Exception):
            if not adapters.configured or not isinstance(copilot, (ProviderError, TimeoutError)):
                raise copilot
            # A failing provider must not hide the others.
            log.warning("cannot list the models of the Copilot API", exc_info=copilot)
            copilot = []
        if login is None and not (adapters.configured or adapters.fallback or any(found.values())):
            raise no_model_configured()
        return [
            *[await self._of_alias(name, alias) for name, alias in self.aliases.items()],
            *[model for name in configured for model in found[name]],
            *copilot,
            *[model for name in fallback for model in found[name]],
        ]

    async def of_adapter(self, name: str, *, refresh: bool = False) -> list[ModelInfo]:
        """Return the models of one adapter, including those listed by its provider."""
        config = self.models.adapters.find(name)
        return [] if config is None else await self._of(name, config, if_incomplete=True, refresh=refresh)

    async def fetch_list(self, name: str) -> list[ModelInfo]:
        """Fetch the list of models from an adapter's provider; empty if the provider has no such list.

        Raises:
            JumpseatError: the request failed.
        """
        config = self.models.adapters.find(name)
        if config is None or not _has_list(kind := (await self.models.adapters.list_offers(name, config)).kind):
            return []
        found = await self._model_lists().fetch_now(name, lambda: self._list_endpoint(name, config))
        return [self._describe(name, _listed_offer(name, model), kind) for model in found]

    async def probe(self, name: str) -> list[str]:
        """Ask the provider of an adapter for the names of its models, without their details.

        Raises:
            JumpseatError: the request failed.
        """
        config = self.models.adapters.find(name)
        if config is None:
            return []
        endpoint = await self._list_endpoint(name, config)
        listing = PROVIDERS[endpoint.adapter].listing
        if listing is not None:
            endpoint = replace(endpoint, listing=listing._replace(details=None, state=_no_state))
        return list(await self._model_lists().fetch(endpoint))

    def failure(self, name: str) -> JumpseatError | None:
        """Return why the last request for the list of an adapter's provider failed, or ``None``."""
        return self._lists.failure(name) if self._lists is not None else None

    async def ask_server(self, model: ResolvedModel) -> ModelInfo | None:
        """Ask a model server in the user's own network about its running model; ``None`` if it does not say."""
        from jumpseat.adapters.local_servers import is_local, root
        from jumpseat.adapters.models.model_lists import ListEndpoint
        from jumpseat.adapters.provider import CHAT_LISTING
        from jumpseat.adapters.transport.http import HttpModel

        if not isinstance(model.model, HttpModel) or not self.question_s:
            return None
        caller = model.model.caller
        provider = PROVIDERS.get(caller.wire_name)
        if provider is None or not (provider.local or provider.type in _LOCAL_KINDS):
            return None
        if getattr(caller, "key", None) is not None:
            # Its command is for calls alone: it may take time, or ask the user.
            return None
        try:
            with anyio.move_on_after(self.question_s):
                endpoint, network = await caller.resolve_endpoint()
                if not is_local(endpoint.base_url):
                    return None
                listing = CHAT_LISTING
                if provider.family == "anthropic":
                    endpoint = replace(endpoint, base_url=f"{root(endpoint.base_url)}/v1")
                elif provider.listing is not None:
                    listing = provider.listing._replace(details=None)
                found = await self._model_lists().fetch(ListEndpoint(caller.wire_name, endpoint, network, listing))
                # A server with one model takes any name for it.
                return found.get(model.wire_name) or (next(iter(found.values())) if len(found) == 1 else None)
        except JumpseatError as error:
            log.info("the server of model %r does not describe it: %s", model.info.id, error)
        return None

    # --- filling gaps ---------------------------------------------------------------------------------------------

    def with_list(self, info: ModelInfo, wire_name: str, adapter: str) -> ModelInfo:
        """Fill the gaps of ``info`` from the list of the provider of ``adapter``, if that was fetched before."""
        listed = self._lists.find(adapter, wire_name) if self._lists is not None else None
        if listed is None:
            return info
        from jumpseat.adapters.models.known_models import fill_gaps

        return fill_gaps(info, listed)

    def complete(self, info: ModelInfo, wire_name: str, kind: str) -> ModelInfo:
        """Fill the gaps of ``info`` from the built-in facts.

        ``kind`` is the provider type that serves the model.
        """
        return info if kind == SCRIPTED else self._known.complete(info, wire_name, kind)

    def known_names(self) -> list[str]:
        """Return the names of the models with built-in facts, sorted."""
        return self._known.names()

    # --- parts ----------------------------------------------------------------------------------------------------

    async def _of(
        self, name: str, config: AdapterConfig, *, if_incomplete: bool, refresh: bool = False
    ) -> list[ModelInfo]:
        """Return the models that an adapter offers, followed by the others that its provider lists.

        The provider is asked if the adapter sets ``list_models``; if it leaves that unset, only with
        ``if_incomplete`` and if the adapter has no list of models of its own.
        """
        offered = await self.models.adapters.list_offers(name, config)
        offers = list(offered.offers)
        if _wants_list(offered, if_incomplete=if_incomplete):

            async def find_endpoint() -> ListEndpoint:
                return await self._list_endpoint(name, config)

            listed = await self._model_lists().get({name: find_endpoint}, refresh=refresh)
            names = {offer.wire_name for offer in offers}
            offers += [_listed_offer(name, model) for model in listed[name] if model.id not in names]
        return [self._describe(name, offer, offered.kind) for offer in offers]

    def _describe(self, adapter: str, offer: Offer, kind: str) -> ModelInfo:
        return self.complete(self.with_list(offer.info, offer.wire_name, adapter), offer.wire_name, kind)

    async def _of_alias(self, name: str, alias: AliasConfig) -> ModelInfo:
        """Describe the model that an alias refers to."""
        config = self.models.adapters.find(alias.adapter)
        if config is None:
            return ModelInfo(id=name, name=name)
        offered = await self.models.adapters.list_offers(alias.adapter, config)
        offer = find_offer(offered.offers, alias.model)
        offer = offer or Offer(alias.model, alias.model, ModelInfo(id=alias.model))
        return replace(self._describe(alias.adapter, offer, offered.kind), id=name, name=name)

    async def _of_copilot(self, login: Login, *, refresh: bool) -> list[ModelInfo] | JumpseatError | TimeoutError:
        """Return the models of the Copilot API, or the error."""
        try:
            with anyio.fail_after(self.timeout_s if self.models.adapters.configured else None):
                return await self.copilot.models(login, refresh=refresh)
        except (JumpseatError, TimeoutError) as error:
            return error

    async def _list_endpoint(self, name: str, config: AdapterConfig) -> ListEndpoint:
        """Return the endpoint and credentials for listing the models of an adapter's provider."""
        from jumpseat.adapters.models.model_lists import ListEndpoint
        from jumpseat.adapters.transport.http import HttpModel

        # The model's name does not matter, because the model is not called.
        model = (await self.models.make(name, config, "", None)).model
        if not isinstance(model, HttpModel):
            raise ConfigError(f"adapter {name!r} has no list of models")
        caller = model.caller
        return ListEndpoint(caller.wire_name, *await caller.resolve_endpoint())

    @cached_property
    def _known(self) -> KnownModels:
        from jumpseat.adapters.models.known_models import KnownModels

        return KnownModels()

    def _model_lists(self) -> ModelLists:
        from jumpseat.adapters.models.model_lists import ModelLists

        if self._lists is None:
            self._lists = ModelLists(self.models.connections.transport, self.tasks, self.timeout_s)
        return self._lists


def _no_state(_page: JsonObject) -> None:
    return None


def _listed_offer(adapter: str, listed: ModelInfo) -> Offer:
    return Offer(listed.id, listed.id, ModelInfo(id=f"{adapter}/{listed.id}", name=listed.name or listed.id))


def _wants_list(offered: Offered, *, if_incomplete: bool) -> bool:
    if offered.list_models is not None:
        return offered.list_models
    if offered.complete or not if_incomplete:
        return False
    return _has_list(offered.kind)


def _has_list(kind: str) -> bool:
    return kind in PROVIDERS and PROVIDERS[kind].listing is not None
