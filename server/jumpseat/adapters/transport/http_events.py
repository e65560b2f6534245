"""The events of one answer, made of its chunks by whatever decoder its adapter has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from jumpseat.adapters.adapter import Decoder
from jumpseat.adapters.transport.http_response import Answer
from jumpseat.adapters.transport.sse import EventSplitter, JsonLinesDecoder, SseDecoder, too_large
from jumpseat.adapters.wire import as_object, dump_json, one_line, parse_json
from jumpseat.agent.blocks import ReasoningBlock, TextBlock, ToolUseBlock
from jumpseat.agent.model import Completed, ModelEvent, ReasoningDelta, TextDelta, ToolCallDelta
from jumpseat.errors import ProviderError, ProviderProtocolError


class Events:
    """Iterates over the events of one answer.

    Each network chunk is decoded as a whole; its events are then handed out one by one without touching the network
    or the scheduler. A failure in the middle of a chunk comes after the events before it.
    """

    def __init__(
        self, answer: Answer, decoder: Decoder, *, stream: bool, max_answer_bytes: int, max_body_bytes: int
    ) -> None:
        """Without ``stream`` there is only the last event. The limits are those of the transport."""
        self._answer = answer
        self._decoder = decoder
        self._streaming = stream
        self._max_answer_bytes = max_answer_bytes
        self._max_body_bytes = max_body_bytes
        self._splitter: EventSplitter | None = None
        self._ready: Iterator[ModelEvent] = iter(())
        self._error: ProviderError | None = None
        self._ended = False
        self._begun = False
        self._bytes = 0
        self.complete = False

    def __aiter__(self) -> Events:
        return self

    async def __anext__(self) -> ModelEvent:
        while True:
            for event in self._ready:
                return event
            if self._error is not None:
                raise self._error
            if self._ended:
                raise StopAsyncIteration
            self._ready = iter(await self._more())

    async def _more(self) -> list[ModelEvent]:
        """The events of the next chunk; sets what comes after them."""
        events: list[ModelEvent] = []
        try:
            if not self._begun:
                self._begun = True
                await self._begin(events)
            else:
                await self._step(events)
        except ProviderError as error:
            self._error = error
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            # A provider may send anything; what a decoder did not foresee is the provider's fault to the user.
            self._error = ProviderProtocolError(
                f"the answer of {self._answer.place} is not of the expected form ({type(error).__name__})"
            )
        if events and type(events[-1]) is Completed:
            self._ended = self.complete = True
        elif self._ended and self._error is None:
            self._error = ProviderProtocolError(f"{self._answer.place} ended its stream before its answer")
        return events if self._streaming else [event for event in events if type(event) is Completed]

    async def _begin(self, events: list[ModelEvent]) -> None:
        """Find out how the answer is written and take its first chunk, or all of it where it is one JSON text."""
        kind = self._answer.content_type
        if "event-stream" in kind:
            self._splitter = SseDecoder()
        elif "ndjson" in kind or "jsonl" in kind or "json-seq" in kind:
            self._splitter = JsonLinesDecoder()
        elif "json" in kind:
            self._whole(await self._answer.body(self._max_body_bytes), events)
            return
        else:
            # Servers forget or mistake the type; the first bytes tell.
            await self._guess(events)
            return
        await self._step(events)

    async def _guess(self, events: list[ModelEvent]) -> None:
        head = b""
        while not head.lstrip() and (piece := await self._answer.chunk()) is not None:
            head += piece
        start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
        if start.startswith((b"data", b"event", b"id:", b"retry:", b":")):
            self._splitter = SseDecoder()
            self._take(self._splitter.feed(head), events)
            return
        body = head + await self._answer.body(self._max_body_bytes)
        if start.startswith((b"{", b"[")):
            self._whole(body, events)
            return
        kind = self._answer.content_type or "no content type"
        text = one_line(body[:16_000].decode("utf-8", "replace"))
        raise ProviderProtocolError(
            f"expected JSON or an event stream from {self._answer.place}, got {kind}: {text!r}"
        )

    async def _step(self, events: list[ModelEvent]) -> None:
        assert self._splitter is not None
        piece = await self._answer.chunk()
        if piece is None:
            self._ended = True
            self._take(self._splitter.finish(), events)
            if not events or type(events[-1]) is not Completed:
                events += self._decoder.finish()
            return
        self._bytes += len(piece)
        if self._bytes > self._max_answer_bytes:
            raise too_large(self._max_answer_bytes)
        self._take(self._splitter.feed(piece), events)

    def _take(self, frames: list[tuple[str | None, str]], events: list[ModelEvent]) -> None:
        feed = self._decoder.feed
        for name, data in frames:
            if said := feed(name, data):
                events += said
                if type(said[-1]) is Completed:
                    return

    def _whole(self, body: bytes, events: list[ModelEvent]) -> None:
        value = parse_json(body)
        if isinstance(value, list):
            # A stream in one JSON text, as Gemini writes it where server-sent events are not to be had.
            self._ended = True
            self._take([(None, dump_json(item)) for item in cast("list[Any]", value)], events)
            if not events or type(events[-1]) is not Completed:
                events += self._decoder.finish()
            return
        if not isinstance(value, dict):
            raise ProviderProtocolError(f"expected a JSON object from {self._answer.place}")
        said = self._decoder.whole(as_object(value))
        if len(said) == 1 and type(said[0]) is Completed:
            events += _deltas(said[0])
        events += said


def _deltas(done: Completed) -> Iterator[ModelEvent]:
    """A whole answer as the deltas that a caller who asked for a stream expects."""
    for block in done.message.blocks:
        if isinstance(block, TextBlock) and block.text:
            yield TextDelta(block.text)
        elif isinstance(block, ReasoningBlock) and block.text:
            yield ReasoningDelta(block.text)
        elif isinstance(block, ToolUseBlock):
            yield ToolCallDelta(block.id, block.name, block.arguments_json)
