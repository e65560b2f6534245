"""Models that wrap another one and rewrite requests and events, as for tool calls in XML or structured output."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager

from msgspec.structs import replace

from jumpseat.agent.model import Capabilities, Model, ModelEvent, ModelRequest


class RewritingModel:
    """A model that sends rewritten requests to ``inner`` and rewrites the events of its answers."""

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

    def rewrite_request(self, request: ModelRequest) -> ModelRequest:
        """Return the request to ``inner`` for ``request``."""
        raise NotImplementedError

    def rewriter_for(self, request: ModelRequest) -> Rewriter | None:
        """Return the rewriter for the events of the answer to ``request``; ``None`` leaves them unchanged."""
        raise NotImplementedError

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        """See :meth:`jumpseat.agent.model.Model.stream`."""
        rewriter = self.rewriter_for(request)
        rewritten = self.rewrite_request(request)
        if rewriter is not None and rewritten.announce_blocks:
            # The rewriter replaces blocks of the whole answer.
            rewritten = replace(rewritten, announce_blocks=False)
        async with self.inner.stream(rewritten) as events:
            yield events if rewriter is None else _Rewritten(events, rewriter)


class Rewriter:
    """Rewrites the events of one answer."""

    def events_for(self, event: ModelEvent) -> Iterable[ModelEvent]:
        """Return the events to yield in place of ``event``, possibly none."""
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


def provider_request(model: Model, request: ModelRequest) -> ModelRequest:
    """Return the request that reaches the provider for ``request``, after all rewriting."""
    while isinstance(model, RewritingModel):
        request, model = model.rewrite_request(request), model.inner
    return request
