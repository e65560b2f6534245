"""Mask secrets in the deltas of one answer, including secrets that are split across deltas."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterator
from typing import TypeAlias

from msgspec.structs import replace

from jumpseat.agent.model import BlockCompleted, Completed, ModelEvent, ReasoningDelta, TextDelta, ToolCallDelta
from jumpseat.agent.secrets import MaskedStream, Secrets

Delta: TypeAlias = TextDelta | ReasoningDelta | ToolCallDelta


class MaskedDeltas:
    """Masks the deltas of one answer. A possible beginning of a secret is held back."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        # By the type of the delta and, for deltas of a tool call, its id.
        self._streams: dict[tuple[type[Delta], str], tuple[MaskedStream, Delta]] = {}

    def feed(self, delta: Delta) -> Delta:
        """Return the delta with all text that is safe to show by now."""
        key = (type(delta), delta.id if isinstance(delta, ToolCallDelta) else "")
        stream = self._streams[key][0] if key in self._streams else MaskedStream(self._secrets)
        self._streams[key] = (stream, delta)
        return _with_text(delta, stream.feed(delta.arguments if isinstance(delta, ToolCallDelta) else delta.text))

    def flush(self) -> Iterator[Delta]:
        """Yield deltas with the text held back, at the end of the answer."""
        for stream, delta in self._streams.values():
            if text := stream.flush():
                yield _with_text(delta, text)


class MaskedEvents:
    """The events of one answer, with secrets masked. Implements the iterator of a model's stream."""

    def __init__(self, events: AsyncIterator[ModelEvent], secrets: Secrets) -> None:
        self._events = events
        self._secrets = secrets
        self._deltas = MaskedDeltas(secrets)
        self._ready: deque[ModelEvent] = deque()

    def __aiter__(self) -> MaskedEvents:
        return self

    async def __anext__(self) -> ModelEvent:
        while not self._ready:
            event = await anext(self._events)
            if isinstance(event, Completed):
                self._ready.extend(self._deltas.flush())
                self._ready.append(self._secrets.mask(event))
            elif isinstance(event, BlockCompleted):
                self._ready.append(self._secrets.mask(event))
            else:
                delta = self._deltas.feed(event)
                # The first delta of a tool call may have no text, others only if all of it is held back.
                if isinstance(delta, ToolCallDelta) or delta.text:
                    self._ready.append(delta)
        return self._ready.popleft()


def _with_text(delta: Delta, text: str) -> Delta:
    return replace(delta, arguments=text) if isinstance(delta, ToolCallDelta) else replace(delta, text=text)
