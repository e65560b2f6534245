"""What models there are, and what is known of each: of all sources together.

What is said of a model wins, field by field, over what its provider lists of it (``model_lists.py``), and that over
what the world knows (``known_models.py``). Nobody is asked before somebody wants the list.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import anyio

from jumpseat.adapters.models.adapter_models import AdapterModels, offered
from jumpseat.adapters.models.configured import Offered, no_model_configured
from jumpseat.adapters.models.copilot_source import CopilotSource
from jumpseat.adapters.offer import Offer
from jumpseat.adapters.provider import SCRIPTED
from jumpseat.adapters.providers import PROVIDERS
from jumpseat.agent.model import ModelInfo
from jumpseat.config import AdapterConfig, AliasConfig
from jumpseat.errors import ConfigError, JumpseatError, ProviderError

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from jumpseat.adapters.models.known_models import KnownModels
    from jumpseat.adapters.models.model_lists import Listed, ModelLists
    from jumpseat.agent.login import Login

log = logging.getLogger(__name__)


@dataclass
class ModelCatalogue:
    """``aliases`` are those of the configuration. ``tasks`` is where providers go on being asked for their lists
    when nobody waits any more, as nobody does for longer than ``patience_s``."""

    aliases: Mapping[str, AliasConfig]
    models: AdapterModels
    copilot: CopilotSource
    tasks: TaskGroup | None
    patience_s: float
    _lists: ModelLists | None = None

    async def list(self, login: Login | None = None, *, refresh: bool = False) -> list[ModelInfo]:
        """All models that can be named; those of the Copilot API as ``login`` where one is given.

        Raises:
            ConfigError: there is neither a login nor a configured provider.
            ProviderError: the Copilot API could not be asked.
        """
        adapters = self.models.adapters
        if login is None and not adapters.is_given():
            login = await self.copilot.own_login()
        configured = {**adapters.configured, **adapters.registered}
        fallback = {**adapters.fallback, **adapters.installed()}
        found: dict[str, list[ModelInfo]] = {}
        copilot: list[ModelInfo] | JumpseatError | TimeoutError = []

        async def look_up(name: str, config: AdapterConfig, counts: bool) -> None:
            found[name] = await self._of(name, config, counts=counts, refresh=refresh)

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
            # One provider that does not answer must not hide the others.
            log.warning("the Copilot API did not list its models", exc_info=copilot)
            copilot = []
        if login is None and not (adapters.configured or adapters.fallback or any(found.values())):
            raise no_model_configured()
        return [
            *[await self._of_alias(name, alias) for name, alias in self.aliases.items()],
            *[one for name in configured for one in found[name]],
            *copilot,
            *[one for name in fallback for one in found[name]],
        ]

    async def of_adapter(self, name: str) -> list[ModelInfo]:
        """The models of one adapter that can be named, its provider's list included."""
        config = self.models.adapters.find(name)
        return await self._of(name, config, counts=True) if config is not None else []

    async def listed(self, name: str) -> list[ModelInfo]:
        """What the provider of an adapter says it has when it is asked now; nothing where it has no list.

        Raises:
            JumpseatError: it gives none.
        """
        config = self.models.adapters.find(name)
        if config is None or not _has_list(kind := (await self.models.adapters.offered(name, config)).kind):
            return []
        found = await self._asked().now(name, lambda: self._where(name, config))
        return [self._told(name, _listed_offer(name, one), kind) for one in found]

    # --- what is known of one -------------------------------------------------------------------------------------

    def with_list(self, info: ModelInfo, wire_name: str, adapter: str) -> ModelInfo:
        """``info``; in its gaps what the provider of ``adapter`` has listed of the model, if it has been asked."""
        listed = self._lists.find(adapter, wire_name) if self._lists is not None else None
        if listed is None:
            return info
        from jumpseat.adapters.models.known_models import filled

        return filled(info, listed)

    def completed(self, info: ModelInfo, wire_name: str, kind: str) -> ModelInfo:
        """``info``; in its gaps what the world knows. ``kind`` is the adapter of the server that calls it."""
        return info if kind == SCRIPTED else self._known.complete(info, wire_name, kind)

    # --- parts ----------------------------------------------------------------------------------------------------

    async def _of(
        self, name: str, config: AdapterConfig, *, counts: bool, refresh: bool = False
    ) -> list[ModelInfo]:
        """The models that an adapter offers, then those that its provider lists besides.

        A provider is asked where its adapter says so; where it says nothing and ``counts``, if it offers none.
        """
        told = await self.models.adapters.offered(name, config)
        offers = list(told.offers)
        if _wants_list(told, counts=counts):

            async def where() -> Listed:
                return await self._where(name, config)

            listed = await self._asked().get({name: where}, refresh=refresh)
            names = {one.wire_name for one in offers}
            offers += [_listed_offer(name, one) for one in listed[name] if one.id not in names]
        return [self._told(name, one, told.kind) for one in offers]

    def _told(self, adapter: str, offer: Offer, kind: str) -> ModelInfo:
        return self.completed(self.with_list(offer.info, offer.wire_name, adapter), offer.wire_name, kind)

    async def _of_alias(self, name: str, alias: AliasConfig) -> ModelInfo:
        """What is known of the model that an alias means."""
        config = self.models.adapters.find(alias.adapter)
        if config is None:
            return ModelInfo(id=name, name=name)
        told = await self.models.adapters.offered(alias.adapter, config)
        offer = offered(told.offers, alias.model) or Offer(alias.model, alias.model, ModelInfo(id=alias.model))
        return replace(self._told(alias.adapter, offer, told.kind), id=name, name=name)

    async def _of_copilot(self, login: Login, *, refresh: bool) -> list[ModelInfo] | JumpseatError | TimeoutError:
        """The models of the Copilot API, or what went wrong."""
        try:
            with anyio.fail_after(self.patience_s if self.models.adapters.configured else None):
                return await self.copilot.models(login, refresh=refresh)
        except (JumpseatError, TimeoutError) as error:
            return error

    async def _where(self, name: str, config: AdapterConfig) -> Listed:
        """Where the provider of an adapter is asked for its list, and as whom."""
        from jumpseat.adapters.models.model_lists import Listed
        from jumpseat.adapters.transport.http import HttpModel

        # Any name: it is not called.
        model = (await self.models.make(name, config, "", None)).model
        if not isinstance(model, HttpModel):
            raise ConfigError(f"adapter {name!r} has no list of models")
        caller = model.caller
        return Listed(caller.wire_name, *await caller.whereabouts())

    @cached_property
    def _known(self) -> KnownModels:
        from jumpseat.adapters.models.known_models import KnownModels

        return KnownModels()

    def _asked(self) -> ModelLists:
        from jumpseat.adapters.models.model_lists import ModelLists

        if self._lists is None:
            self._lists = ModelLists(self.models.connections.transport, self.tasks, self.patience_s)
        return self._lists


def _listed_offer(adapter: str, listed: ModelInfo) -> Offer:
    return Offer(listed.id, listed.id, ModelInfo(id=f"{adapter}/{listed.id}", name=listed.name or listed.id))


def _wants_list(told: Offered, *, counts: bool) -> bool:
    if told.list_models is not None:
        return told.list_models
    if told.offers or not counts:
        return False
    return _has_list(told.kind)


def _has_list(kind: str) -> bool:
    return kind in PROVIDERS and PROVIDERS[kind].listing is not None
