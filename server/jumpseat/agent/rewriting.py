"""Models that ask another one in other words: with XML for tools, or with a tool for the form of the answer."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager

from jumpseat.agent.model import Capabilities, Model, ModelEvent, ModelRequest


class RewritingModel:
    """A model that asks ``inner``. What it asks is :meth:`asked`, what becomes of the events :meth:`told`."""

    def __init__(self, inner: Model) -> None:
        self.inner = inner

    @property
    def adapter_name(self) -> str:
        return self.inner.adapter_name

    @property
    def signs_as(self) -> str:
        return self.inner.signs_as

    def capabilities(self, model: str) -> Capabilities:
        return self.inner.capabilities(model)

    def asked(self, request: ModelRequest) -> ModelRequest:
        """What ``inner`` is asked for ``request``."""
        raise NotImplementedError

    def told(self, request: ModelRequest) -> Rewriter | None:
        """What makes the events for ``request`` of those of ``inner``; ``None`` leaves them as they are."""
        raise NotImplementedError

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        """Call the model; see :meth:`jumpseat.agent.model.Model.stream`."""
        rewriter = self.told(request)
        async with self.inner.stream(self.asked(request)) as events:
            yield events if rewriter is None else _Rewritten(events, rewriter)


class Rewriter:
    """Makes events of events, for one answer."""

    def events_for(self, event: ModelEvent) -> Iterable[ModelEvent]:
        """What the client of the model gets for ``event``, which may be nothing."""
        raise NotImplementedError


class _Rewritten:
    def __init__(self, events: AsyncIterator[ModelEvent], rewriter: Rewriter) -> None:
        self._events = events
        self._rewriter = rewriter
        self._waiting: deque[ModelEvent] = deque()

    def __aiter__(self) -> AsyncIterator[ModelEvent]:
        return self

    async def __anext__(self) -> ModelEvent:
        while not self._waiting:
            self._waiting += self._rewriter.events_for(await anext(self._events))
        return self._waiting.popleft()


def as_sent(model: Model, request: ModelRequest) -> ModelRequest:
    """What a provider is asked for ``request``, whatever stands before it."""
    while isinstance(model, RewritingModel):
        request, model = model.asked(request), model.inner
    return request
