"""Decode the chunks of a response into model events with the adapter's decoder."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any, Final, cast

from jumpseat.adapters.adapter import Decoder
from jumpseat.adapters.transport.http_response import ProviderResponse
from jumpseat.adapters.transport.sse import EventSplitter, JsonLinesDecoder, SseDecoder, too_large
from jumpseat.adapters.wire import as_object, dump_json, one_line, parse_json
from jumpseat.agent.blocks import ReasoningBlock, TextBlock, ToolUseBlock
from jumpseat.agent.model import Completed, ModelEvent, ReasoningDelta, TextDelta, ToolCallDelta
from jumpseat.errors import ProviderError, ProviderProtocolError

_EVENT_STARTS: Final = (b"data", b"event", b"id:", b"retry:", b":")
_SNIFFED_BYTES: Final = 6
"""The number of bytes that tell server-sent events from JSON: the longest of the starts above."""


class Events:
    """An asynchronous iterator over the model events of one response.

    Each network chunk is decoded as a whole; its events are then returned one by one without touching the network
    or the scheduler. An error in the middle of a chunk is raised after the events that precede it.
    """

    def __init__(
        self,
        response: ProviderResponse,
        decoder: Decoder,
        *,
        stream: bool,
        max_answer_bytes: int,
        max_body_bytes: int,
        decode: Callable[[Callable[[], None]], Awaitable[None]] | None = None,
    ) -> None:
        """Without ``stream``, only the final ``Completed`` is returned. The limits are those of the transport.

        ``decode`` runs each step of a decoder that may block.
        """
        self._response = response
        self._decoder = decoder
        self._decode = decode
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
        """Decode the next chunk into events, and note whether an error or the end follows them."""
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
            # A provider may send anything; input that a decoder does not expect is reported as the provider's
            # fault.
            self._error = ProviderProtocolError(
                f"unexpected response format from {self._response.place} ({type(error).__name__})"
            )
        if events and type(events[-1]) is Completed:
            self._ended = self.complete = True
        elif self._ended and self._error is None:
            self._error = ProviderProtocolError(
                f"{self._response.place} ended its stream before the response was complete"
            )
        return events if self._streaming else [event for event in events if type(event) is Completed]

    async def _begin(self, events: list[ModelEvent]) -> None:
        """Determine the format of the response and decode its first chunk, or all of a JSON body."""
        kind = self._response.content_type
        if "event-stream" in kind:
            self._splitter = SseDecoder()
        elif "ndjson" in kind or "jsonl" in kind or "json-seq" in kind:
            self._splitter = JsonLinesDecoder()
        elif "json" in kind:
            body = await self._response.body(self._max_body_bytes)
            await self._run(partial(self._whole, body, events))
            return
        else:
            # Servers omit or mistake the content type, so the first bytes decide.
            await self._sniff(events)
            return
        await self._step(events)

    async def _sniff(self, events: list[ModelEvent]) -> None:
        head = start = b""
        while len(start) < _SNIFFED_BYTES and start[:1] not in (b"{", b"["):
            if (piece := await self._response.chunk()) is None:
                break
            head += piece
            start = _without_bom(head)
        if start.startswith(_EVENT_STARTS):
            self._splitter = SseDecoder()
            await self._run(partial(self._take, self._splitter.feed(head), events))
            return
        body = head + await self._response.body(self._max_body_bytes)
        self._response.keep_content(body)
        if start.startswith((b"{", b"[")):
            await self._run(partial(self._whole, body, events))
            return
        kind = self._response.content_type or "no content type"
        text = one_line(body[:16_000].decode("utf-8", "replace"))
        raise ProviderProtocolError(
            f"expected JSON or an event stream from {self._response.place}, got {kind}: {text!r}"
        )

    async def _step(self, events: list[ModelEvent]) -> None:
        assert self._splitter is not None
        piece = await self._response.chunk()
        if piece is None:
            self._ended = True
            await self._run(partial(self._finish, self._splitter.finish(), events))
            return
        self._bytes += len(piece)
        if self._bytes > self._max_answer_bytes:
            raise too_large(self._max_answer_bytes)
        frames = self._splitter.feed(piece)
        if self._decode is None:
            # The usual case has no detour, because it runs for every chunk.
            self._take(frames, events)
        elif frames:
            await self._decode(partial(self._take, frames, events))

    async def _run(self, step: Callable[[], None]) -> None:
        if self._decode is None:
            step()
        else:
            await self._decode(step)

    def _finish(self, frames: list[tuple[str | None, str]], events: list[ModelEvent]) -> None:
        self._take(frames, events)
        if not events or type(events[-1]) is not Completed:
            events += self._decoder.finish()

    def _take(self, frames: list[tuple[str | None, str]], events: list[ModelEvent]) -> None:
        feed = self._decoder.feed
        for name, data in frames:
            if decoded := feed(name, data):
                events += decoded
                if type(decoded[-1]) is Completed:
                    return

    def _whole(self, body: bytes, events: list[ModelEvent]) -> None:
        if (splitter := _splitter_of(body)) is not None:
            # A stream with the content type of JSON.
            self._ended = True
            self._finish([*splitter.feed(body), *splitter.finish()], events)
            return
        value = parse_json(body)
        if isinstance(value, list):
            # A stream written as one JSON array, as Gemini does without server-sent events.
            self._ended = True
            self._finish([(None, dump_json(item)) for item in cast("list[Any]", value)], events)
            return
        if not isinstance(value, dict):
            raise ProviderProtocolError(f"expected a JSON object from {self._response.place}")
        decoded = self._decoder.whole(as_object(value))
        if len(decoded) == 1 and type(decoded[0]) is Completed:
            events += _deltas(decoded[0])
        events += decoded


def _without_bom(head: bytes) -> bytes:
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()


def _splitter_of(body: bytes) -> EventSplitter | None:
    """Return the splitter for a body that is a stream after all, ``None`` if it is one JSON value."""
    start = _without_bom(body)
    if start.startswith(_EVENT_STARTS):
        return SseDecoder()
    first, _, rest = start.partition(b"\n")
    # Most bodies have one line, or a first line that is no object by itself.
    if not rest.strip() or not first.rstrip().endswith(b"}") or not rest.lstrip().startswith(b"{"):
        return None
    return JsonLinesDecoder()


def _deltas(done: Completed) -> Iterator[ModelEvent]:
    """Return the deltas of a response that was not streamed, for a caller that requested a stream."""
    for block in done.message.blocks:
        if isinstance(block, TextBlock) and block.text:
            yield TextDelta(block.text)
        elif isinstance(block, ReasoningBlock) and block.text:
            yield ReasoningDelta(block.text)
        elif isinstance(block, ToolUseBlock):
            yield ToolCallDelta(block.id, block.name, block.arguments_json)
