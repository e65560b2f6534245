"""The lists of models that providers give, as far as the configuration wants them (``list_models = true``).

A provider is asked when a list is wanted, never before, all of them at the same time; its answer is kept for half
an hour. Whoever wants a list waits for an answer that has never been there, but not for long: what comes later is
there the next time, and until then what there was. A provider that fails hides no other one, and nothing that it
said before.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio
from anyio.abc import TaskGroup

from jumpseat.adapters.adapter import Endpoint, Network
from jumpseat.adapters.providers import PROVIDERS
from jumpseat.agent.model import ModelInfo
from jumpseat.errors import JumpseatError, ProviderError, ProviderProtocolError

if TYPE_CHECKING:
    from jumpseat.adapters.listing import ListRequest
    from jumpseat.adapters.transport.http import HttpTransport

log = logging.getLogger(__name__)

KEEP_S: Final = 30 * 60.0
"""How long an answer counts as new."""

PATIENCE_S: Final = 3.0
"""How long those who want a list wait for providers that have not answered yet."""

PAUSE_S: Final = 30.0
"""How long a provider that failed is left alone."""

MAX_PAGES: Final = 20
AT_ONCE: Final = 8
"""How many models a provider is asked about at the same time."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A provider that is to be asked: by the wire of ``adapter``, at ``endpoint``, by way of ``network``."""

    adapter: str
    endpoint: Endpoint
    network: Network | None = None


Where: TypeAlias = Callable[[], Awaitable[Listed]]
"""Says where a provider is to be asked, when it is. May look secrets up."""


@dataclass(slots=True)
class _Entry:
    models: dict[str, ModelInfo] | None = None
    good_until: float = 0.0
    waited_until: float = 0.0
    asking: anyio.Event | None = None


@dataclass(slots=True)
class ModelLists:
    """All lists of the process, by the names under which their providers are configured.

    ``tasks`` is where asking goes on that nobody waits for; without it, it ends with those who wait.
    """

    transport: Callable[[], HttpTransport]
    tasks: TaskGroup | None = None
    patience_s: float = PATIENCE_S
    clock: Callable[[], float] = monotonic
    _entries: dict[str, _Entry] = field(default_factory=dict[str, _Entry])

    async def get(self, providers: Mapping[str, Where], *, refresh: bool = False) -> dict[str, list[ModelInfo]]:
        """What every one of ``providers`` lists, under its own names; nothing for one that has not answered.

        With ``refresh`` all are asked, and waited for, however new their answers are.
        """
        async with anyio.create_task_group() as here:
            waits: list[anyio.Event] = []
            for name, where in providers.items():
                entry = self._entries.setdefault(name, _Entry())
                if entry.asking is None and (refresh or self.clock() >= entry.good_until):
                    entry.asking = anyio.Event()
                    entry.waited_until = self.clock() + self.patience_s
                    (self.tasks or here).start_soon(self._ask, name, where, entry, entry.asking)
                # One that does not answer is waited for once, not by everybody who comes while it does not.
                awaited = entry.models is None and self.clock() < entry.waited_until
                if entry.asking is not None and (refresh or awaited):
                    waits.append(entry.asking)
            with anyio.move_on_after(self.patience_s) as scope:
                for event in waits:
                    await event.wait()
            if scope.cancelled_caught:
                late = ", ".join(name for name in providers if self._entries[name].asking is not None)
                log.warning("no list of models yet from: %s", late)
            here.cancel_scope.cancel()
        return {name: list((self._entries[name].models or {}).values()) for name in providers}

    def find(self, provider: str, model: str) -> ModelInfo | None:
        """What a provider said of a model, if it has been asked; nobody is asked here."""
        entry = self._entries.get(provider)
        return entry.models.get(model) if entry is not None and entry.models is not None else None

    async def now(self, name: str, where: Where) -> list[ModelInfo]:
        """What a provider lists when it is asked now, by somebody who wants to know why it does not.

        Raises:
            JumpseatError: it gives no list.
        """
        models = await self._fetch(await where())
        self._entries[name] = _Entry(models, good_until=self.clock() + KEEP_S)
        return list(models.values())

    async def _ask(self, name: str, where: Where, entry: _Entry, done: anyio.Event) -> None:
        good_for = PAUSE_S
        try:
            entry.models = await self._fetch(await where())
            good_for = KEEP_S
        except Exception as error:
            # Nobody waits for this task: what an adapter or a provider does wrong must not end more than its list.
            # Of errors that are not ours the text may hold a secret.
            reason = error if isinstance(error, JumpseatError) else f"it failed with {type(error).__name__}"
            log.warning("%s did not list its models: %s", name, reason)
        finally:
            entry.good_until = self.clock() + good_for
            entry.asking = None
            done.set()

    async def _fetch(self, provider: Listed) -> dict[str, ModelInfo]:
        info = PROVIDERS.get(provider.adapter)
        listing = info.listing if info is not None else None
        if info is None or listing is None:
            raise ProviderProtocolError(f"there is no list of models for the adapter {provider.adapter!r}")
        adapter, found = info.load(), dict[str, ModelInfo]()
        after: str | None = None
        for _ in range(MAX_PAGES):
            page = listing.read(await self._answer(provider, listing.request(adapter, provider.endpoint, after)))
            for one in page.models:
                found.setdefault(one.id, one)
            if page.after is None or page.after == after:
                break
            after = page.after
        if listing.details is None:
            return found
        details, limiter = listing.details, anyio.CapacityLimiter(AT_ONCE)

        async def look_up(info: ModelInfo) -> None:
            try:
                async with limiter:
                    answer = await self._answer(provider, details.request(adapter, provider.endpoint, info.id))
            except ProviderError as error:
                log.info("nothing more is known of model %r: %s", info.id, error)
                return
            told[info.id] = details.read(info, answer, provider.endpoint)

        told: dict[str, ModelInfo | None] = {**found}
        async with anyio.create_task_group() as tasks:
            for info in found.values():
                tasks.start_soon(look_up, info)
        return {name: one for name, one in told.items() if one is not None}

    async def _answer(self, provider: Listed, question: ListRequest) -> dict[str, object]:
        transport = self.transport()
        if provider.network is not None:
            transport = transport.with_network(provider.network)
        if question.body is None:
            answer = await transport.get_json(question.url, question.headers)
        else:
            answer = await transport.post_json(question.url, question.headers, question.body)
        if not isinstance(answer, dict):
            # Some servers give the bare list.
            return {"data": answer, "models": answer}
        return answer
