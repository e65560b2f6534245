"""Decode responses with handlers, alone or in addition to the decoder of a wire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from jumpseat.adapters.adapter import Decoder
from jumpseat.adapters.declared.canonical import reasoning_of, use_of
from jumpseat.adapters.declared.handlers import Handler
from jumpseat.adapters.declared.view import AdapterView
from jumpseat.adapters.failures import provider_error
from jumpseat.adapters.wire import as_list, as_object, as_text
from jumpseat.agent.blocks import AssistantBlock, AssistantMessage, JsonObject, ReasoningBlock, TextBlock
from jumpseat.agent.model import (
    Completed,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    StopReason,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from jumpseat.declared.files import FATAL_ERRORS
from jumpseat.errors import JumpseatError, ProviderProtocolError

DONE: Final = "[DONE]"

USUAL_DELTA: Final = frozenset(
    {"annotations", "audio", "content", "function_call", "refusal", "role", "tool_calls"}
)
"""The standard fields of a delta; all others are extra fields."""

STOP_REASONS: Final[Mapping[str, StopReason]] = {
    "end_turn": "end_turn",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    "refusal": "refusal",
    "content_filter": "content_filter",
    "stop_sequence": "stop_sequence",
}


class HandlerDecoder:
    """Decodes a response with handlers alone: ``parse_chat`` and its helpers.

    ``parse_chat`` is called with the lines of a stream (``data: {...}``), or with ``{status, body}`` of a whole
    response. It reports an error of the provider as ``{status: "error", output: text}``.
    """

    def __init__(self, view: AdapterView, handlers: Mapping[str, Handler], request: ModelRequest) -> None:
        self._view = view
        self._handlers = handlers
        self._turn = len(request.messages)
        self._calls: list[Any] = []
        self._text: list[str] = []
        self._reasoning: list[Any] = []
        self._tokens: Any = None
        self._response_id: str | None = None
        self._stop: StopReason | None = None
        self._has_content = False
        self._done = False

    def feed(self, event: str | None, data: str) -> list[ModelEvent]:
        if self._done:
            return []
        if data == DONE:
            return self._complete() if self._has_content else []
        events: list[ModelEvent] = []
        if event is not None:
            self._parse(f"event: {event}", events)
        self._parse(f"data: {data}", events)
        return events

    def finish(self) -> list[ModelEvent]:
        if self._done:
            return []
        if not self._has_content:
            raise ProviderProtocolError("the provider ended the stream before it sent anything")
        return self._complete()

    def whole(self, body: JsonObject) -> list[ModelEvent]:
        self._parse({"status": 200, "body": orjson.dumps(body).decode()}, [])
        if not self._has_content:
            raise ProviderProtocolError("the adapter's parse_chat found no content in the provider's answer")
        return self._complete()

    def _parse(self, data: str | JsonObject, events: list[ModelEvent]) -> None:
        result = self._run("parse_chat", data, self._calls)
        if result is not None:
            self._take(as_object(result), events)
        elif self._calls:
            self._has_content = True
        if "parse_tokens" in self._handlers and self._view.features.get("tokens", True):
            tokens = self._run("parse_tokens", data)
            if tokens:
                self._tokens = tokens

    def _take(self, result: JsonObject, events: list[ModelEvent]) -> None:
        if result.get("status") == "error":
            raise provider_error(as_text(result.get("output")) or "the provider reported an error")
        if result.get("extra") and "parse_meta" in self._handlers:
            result = as_object(self._run("parse_meta", result)) or result
        self._has_content = True
        output = as_object(result.get("output"))
        reasoning = output.get("reasoning")
        if reasoning:
            self._reasoning.append(reasoning)
            text = reasoning if isinstance(reasoning, str) else as_text(as_object(reasoning).get("content"))
            if text:
                events.append(ReasoningDelta(text))
        content = output.get("content")
        if isinstance(content, str) and content:
            self._text.append(content)
            events.append(TextDelta(content))
        meta = as_object(output.get("meta"))
        self._response_id = as_text(meta.get("response_id")) or self._response_id
        if (reason := STOP_REASONS.get(as_text(meta.get("stop_reason")))) is not None:
            self._stop = reason

    def _complete(self) -> list[ModelEvent]:
        self._done = True
        events: list[ModelEvent] = []
        blocks: list[AssistantBlock] = []
        if self._reasoning:
            blocks.append(self._reasoning_block())
        if self._text:
            blocks.append(TextBlock("".join(self._text)))
        calls: Any = self._calls
        if calls and "format_calls" in self._handlers:
            calls = self._run("format_calls", calls)
        for position, call in enumerate(as_list(calls)):
            use = use_of(as_object(call), self._view.name, f"call_{self._turn}_{position}")
            events.append(ToolCallDelta(use.id, use.name, use.arguments_json))
            blocks.append(use)
        stop = self._stop or ("tool_use" if calls else "end_turn")
        events.append(Completed(AssistantMessage(blocks), stop, usage_of(self._tokens), None, self._response_id))
        return events

    def _reasoning_block(self) -> ReasoningBlock:
        text, raw = reasoning_of(self._reasoning)
        if "build_reasoning" in self._handlers and not all(isinstance(c, str) for c in self._reasoning):
            raw = self._run("build_reasoning", self._reasoning)
        return ReasoningBlock(text, self._view.name, raw)

    def _run(self, name: str, *args: Any) -> Any:
        return run_parser(self._view, self._handlers, name, *args)


class InlineDecoder:
    """Decodes the text of a whole response with ``parse_inline``, and its tokens with ``parse_tokens``.

    Some servers stream even if not asked to. ``parse_inline`` cannot read chunks, so such a response is decoded by
    ``streamed``, the decoder for chats.
    """

    def __init__(self, view: AdapterView, handlers: Mapping[str, Handler], streamed: Decoder) -> None:
        self._view = view
        self._handlers = handlers
        self._streamed = streamed

    def feed(self, event: str | None, data: str) -> list[ModelEvent]:
        return self._streamed.feed(event, data)

    def finish(self) -> list[ModelEvent]:
        return self._streamed.finish()

    def whole(self, body: JsonObject) -> list[ModelEvent]:
        data: JsonObject = {"status": 200, "body": orjson.dumps(body).decode()}
        result = as_object(run_parser(self._view, self._handlers, "parse_inline", data, {}))
        if not result:
            raise ProviderProtocolError("the adapter's parse_inline found no content in the provider's answer")
        if result.get("status") == "error":
            raise provider_error(as_text(result.get("output")) or "the provider reported an error")
        tokens: Any = None
        if "parse_tokens" in self._handlers:
            tokens = run_parser(self._view, self._handlers, "parse_tokens", data)
        text = as_text(result.get("output"))
        return [Completed(AssistantMessage([TextBlock(text)]), "end_turn", usage_of(tokens))]


class MetaDecoder:
    """Adds handlers to the decoder of a wire, for extra fields of a delta and for token counts."""

    def __init__(self, view: AdapterView, handlers: Mapping[str, Handler], decoder: Decoder) -> None:
        self._view = view
        self._handlers = handlers
        self._decoder = decoder
        self._reasoning: list[Any] = []
        self._tokens: Any = None

    def feed(self, event: str | None, data: str) -> list[ModelEvent]:
        events = self._decoder.feed(event, data)
        if data and data != DONE:
            self._count(f"data: {data}")
            if "parse_meta" in self._handlers:
                events = self._with_extras(events, as_object(orjson.loads(data)), "delta")
        return self._add_results(events)

    def finish(self) -> list[ModelEvent]:
        return self._add_results(self._decoder.finish())

    def whole(self, body: JsonObject) -> list[ModelEvent]:
        events = self._decoder.whole(body)
        self._count({"status": 200, "body": orjson.dumps(body).decode()})
        if "parse_meta" in self._handlers:
            events = self._with_extras(events, body, "message")
        return self._add_results(events)

    def _count(self, data: str | JsonObject) -> None:
        if "parse_tokens" in self._handlers and self._view.features.get("tokens", True):
            self._tokens = run_parser(self._view, self._handlers, "parse_tokens", data) or self._tokens

    def _with_extras(self, events: list[ModelEvent], chunk: JsonObject, key: str) -> list[ModelEvent]:
        choices = as_list(chunk.get("choices"))
        message = as_object(as_object(choices[0]).get(key)) if choices else {}
        extra = {name: value for name, value in message.items() if name not in USUAL_DELTA and value is not None}
        if not extra:
            return events
        output: JsonObject = {"role": message.get("role"), "content": message.get("content")}
        result = {"status": "success", "output": output, "extra": extra}
        read = as_object(as_object(run_parser(self._view, self._handlers, "parse_meta", result)).get("output"))
        reasoning = read.get("reasoning")
        if reasoning is None:
            return events
        self._reasoning.append(reasoning)
        if any(isinstance(event, ReasoningDelta) for event in events):
            # The wire's decoder has read the field already.
            return events
        text = reasoning if isinstance(reasoning, str) else as_text(as_object(reasoning).get("content"))
        return [ReasoningDelta(text), *events] if text else events

    def _add_results(self, events: list[ModelEvent]) -> list[ModelEvent]:
        if not events or not isinstance(events[-1], Completed):
            return events
        done = events[-1]
        if self._reasoning:
            text, raw = reasoning_of(self._reasoning)
            if "build_reasoning" in self._handlers:
                raw = run_parser(self._view, self._handlers, "build_reasoning", self._reasoning)
            rest = [block for block in done.message.blocks if not isinstance(block, ReasoningBlock)]
            known = [block for block in done.message.blocks if isinstance(block, ReasoningBlock)]
            made = known[0] if known and raw is None else ReasoningBlock(text, self._view.name, raw)
            done.message.blocks[:] = [made, *rest]
        if self._tokens is None:
            return events
        usage = done.usage or usage_of(self._tokens)
        return [*events[:-1], Completed(done.message, done.stop_reason, usage, done.model, done.response_id)]


def usage_of(tokens: Any) -> Usage | None:
    """Convert the result of ``parse_tokens``: a total, or ``{input, output, cached, reasoning}``."""
    if isinstance(tokens, Mapping):
        table = as_object(dict(tokens))  # pyright: ignore[reportUnknownArgumentType]
        return Usage(
            *(int(table.get(key) or 0) for key in ("input", "output", "cached", "cache_written", "reasoning"))
        )
    # A bare total does not distinguish input from output; as input it counts against the context window.
    return Usage(input_tokens=int(tokens)) if isinstance(tokens, (int, float)) else None


def run_parser(view: AdapterView, handlers: Mapping[str, Handler], name: str, *args: Any) -> Any:
    """Run a handler on a part of the response and return its result.

    Raises:
        ProviderProtocolError: the handler failed, so the response has an unexpected format.
    """
    try:
        return handlers[name](view, *args)
    except JumpseatError:
        raise
    except (Exception, *FATAL_ERRORS) as error:
        raise ProviderProtocolError(
            f"adapter {view.name!r}: its handler {name} failed on the answer ({type(error).__name__})"
        ) from error
