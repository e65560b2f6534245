"""Fetch and cache the model lists of providers, where the configuration asks for them (``list_models = true``).

Lists are fetched on request, from all providers concurrently, and cached for half an hour. A request waits briefly
for a list that was never fetched before; a list that arrives later is used next time, and an expired one is used
until then. A failing provider affects neither other providers nor its own previous list.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio
from anyio.abc import TaskGroup
from msgspec import Struct, field

from jumpseat.adapters.adapter import Adapter, Endpoint, Network
from jumpseat.adapters.providers import PROVIDERS
from jumpseat.agent.model import ModelInfo
from jumpseat.errors import JumpseatError, ProviderError, ProviderProtocolError, ProviderTransportError

if TYPE_CHECKING:
    from jumpseat.adapters.local_servers import ServerState
    from jumpseat.adapters.provider import ListRequest, ModelDetails, ModelListing
    from jumpseat.adapters.transport.http import HttpTransport

log = logging.getLogger(__name__)

KEEP_S: Final = 30 * 60.0
"""The time after which a list is fetched again."""

LIST_TIMEOUT_S: Final = 3.0
"""The time that a request waits for providers whose list was never fetched."""

PAUSE_S: Final = 30.0
"""The time before a failed provider is asked again."""

MAX_PAGES: Final = 20
AT_ONCE: Final = 8
"""The maximum number of concurrent requests for model details to one provider."""


class ListEndpoint(Struct, frozen=True):
    """The endpoint that lists models: in the format of the wire ``adapter``, reached through ``network``.

    ``listing`` replaces the list of the wire's provider.
    """

    adapter: str
    endpoint: Endpoint
    network: Network | None = None
    listing: ModelListing | None = None


FindListEndpoint: TypeAlias = Callable[[], Awaitable[ListEndpoint]]
"""Returns the endpoint when it is needed; may look up secrets."""


class _Entry(Struct):
    """The list of one provider and the state of fetching it."""

    models: dict[str, ModelInfo] | None = None
    good_until: float = 0.0
    waited_until: float = 0.0
    asking: anyio.Event | None = None
    failure: JumpseatError | None = None


class ModelLists(Struct):
    """All model lists of the process, by the configured name of the provider.

    Requests continue in ``tasks`` after the last waiter has left; without it, they are cancelled then.
    """

    transport: Callable[[], HttpTransport]
    tasks: TaskGroup | None = None
    timeout_s: float = LIST_TIMEOUT_S
    clock: Callable[[], float] = monotonic
    _entries: dict[str, _Entry] = field(default_factory=dict[str, _Entry])

    async def get(
        self, providers: Mapping[str, FindListEndpoint], *, refresh: bool = False
    ) -> dict[str, list[ModelInfo]]:
        """Return the models of each provider, by its name; an empty list for one that has not responded yet.

        With ``refresh``, all providers are asked and waited for, even if their lists are recent.
        """
        async with anyio.create_task_group() as here:
            waits: list[anyio.Event] = []
            for name, find_endpoint in providers.items():
                entry = self._entries.setdefault(name, _Entry())
                if entry.asking is None and (refresh or self.clock() >= entry.good_until):
                    entry.asking = anyio.Event()
                    entry.waited_until = self.clock() + self.timeout_s
                    (self.tasks or here).start_soon(self._ask, name, find_endpoint, entry, entry.asking)
                # Only the first request waits for an unresponsive provider, not every request that follows.
                awaited = entry.models is None and self.clock() < entry.waited_until
                if entry.asking is not None and (refresh or awaited):
                    waits.append(entry.asking)
            with anyio.move_on_after(self.timeout_s) as scope:
                for event in waits:
                    await event.wait()
            if scope.cancelled_caught:
                late = [name for name in providers if self._entries[name].asking is not None]
                log.warning("no list of models yet from: %s", ", ".join(late))
                for name in late:
                    text = f"no list of models within {self.timeout_s:g} s, so name a model"
                    self._entries[name].failure = ProviderTransportError(text)
            here.cancel_scope.cancel()
        return {name: list((self._entries[name].models or {}).values()) for name in providers}

    def find(self, provider: str, model: str) -> ModelInfo | None:
        """Return a model from a provider's cached list, or ``None``; nothing is fetched."""
        entry = self._entries.get(provider)
        return entry.models.get(model) if entry is not None and entry.models is not None else None

    def failure(self, provider: str) -> JumpseatError | None:
        """Return why the last request for a provider's list has brought none, or ``None``."""
        entry = self._entries.get(provider)
        return entry.failure if entry is not None else None

    async def fetch_now(self, name: str, find_endpoint: FindListEndpoint) -> list[ModelInfo]:
        """Fetch the list of a provider now, bypassing the cache and reporting errors.

        Raises:
            JumpseatError: the list cannot be fetched.
        """
        models = await self.fetch(await find_endpoint())
        self._entries[name] = _Entry(models, good_until=self.clock() + KEEP_S)
        return list(models.values())

    async def _ask(self, name: str, find_endpoint: FindListEndpoint, entry: _Entry, done: anyio.Event) -> None:
        good_for = PAUSE_S
        try:
            entry.models = await self.fetch(await find_endpoint())
            entry.failure = None
            good_for = KEEP_S
        except Exception as error:
            # This task may outlive its caller, so no failure of an adapter or provider may escape it. The message
            # of an unexpected error may contain a secret.
            unexpected = ProviderProtocolError(f"it failed with {type(error).__name__}")
            entry.failure = error if isinstance(error, JumpseatError) else unexpected
            log.warning("cannot list the models of %s: %s", name, entry.failure)
        finally:
            entry.good_until = self.clock() + good_for
            entry.asking = None
            done.set()

    async def fetch(self, provider: ListEndpoint) -> dict[str, ModelInfo]:
        """Fetch the list of an endpoint without caching it: its models, by their names at the provider.

        Raises:
            JumpseatError: the list cannot be fetched.
        """
        info = PROVIDERS.get(provider.adapter)
        listing = provider.listing or (info.listing if info is not None else None)
        if info is None or listing is None:
            raise ProviderProtocolError(f"adapter {provider.adapter!r} cannot list models")
        adapter, found = info.load(), dict[str, ModelInfo]()
        after: str | None = None
        state: ServerState | None = None
        for _ in range(MAX_PAGES):
            answer = await self._answer(provider, listing.request(adapter, provider.endpoint, after))
            page, state = listing.read(answer), listing.state(answer)
            for model in page.models:
                found.setdefault(model.id, model)
            if page.after is None or page.after == after:
                break
            after = page.after
        if listing.details is not None:
            found = await self._with_details(provider, adapter, listing.details, found)
        if state is not None:
            found = await self._with_state(provider, adapter, listing, state, found)
        return found

    async def _with_details(
        self, provider: ListEndpoint, adapter: Adapter, details: ModelDetails, found: dict[str, ModelInfo]
    ) -> dict[str, ModelInfo]:
        """Complete each model by a request of its own; those that cannot chat are left out."""
        limiter = anyio.CapacityLimiter(AT_ONCE)

        async def look_up(info: ModelInfo) -> None:
            try:
                async with limiter:
                    answer = await self._answer(provider, details.request(adapter, provider.endpoint, info.id))
            except ProviderError as error:
                log.info("cannot fetch the details of model %r: %s", info.id, error)
                return
            detailed[info.id] = details.read(info, answer, provider.endpoint)

        detailed: dict[str, ModelInfo | None] = {**found}
        async with anyio.create_task_group() as tasks:
            for info in found.values():
                tasks.start_soon(look_up, info)
        return {name: value for name, value in detailed.items() if value is not None}

    async def _with_state(
        self,
        provider: ListEndpoint,
        adapter: Adapter,
        listing: ModelListing,
        state: ServerState,
        found: dict[str, ModelInfo],
    ) -> dict[str, ModelInfo]:
        """Complete the models with what the server says of those that run."""
        endpoint = provider.endpoint
        try:
            answer = await self._answer(provider, listing.state_request(state, adapter, endpoint))
        except ProviderError as error:
            log.info("cannot fetch the state of the model server: %s", error)
            return found
        return {name: state.read(info, answer, endpoint) for name, info in found.items()}

    async def _answer(self, provider: ListEndpoint, question: ListRequest) -> dict[str, object]:
        transport = self.transport()
        if provider.network is not None:
            transport = transport.with_network(provider.network)
        if question.body is None:
            answer = await transport.get_json(question.url, question.headers)
        else:
            answer = await transport.post_json(question.url, question.headers, question.body)
        if not isinstance(answer, dict):
            # Some servers return a bare array.
            return {"data": answer, "models": answer}
        return answer
