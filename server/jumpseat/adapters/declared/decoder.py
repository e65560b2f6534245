"""Decode responses with handlers, alone or in addition to the decoder of a wire."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Any, Final, cast

import orjson

from jumpseat.adapters.adapter import Decoder
from jumpseat.adapters.declared.canonical import reasoning_of, use_of
from jumpseat.adapters.declared.functions import Functions
from jumpseat.adapters.failures import failure_of_event, provider_error
from jumpseat.adapters.wire import as_list, as_object, as_text
from jumpseat.agent.blocks import (
    AssistantBlock,
    AssistantMessage,
    JsonObject,
    ReasoningBlock,
    TextBlock,
    UserMessage,
)
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
from jumpseat.errors import ProviderProtocolError
from jumpseat_protocol.members import misspelt

DONE: Final = "[DONE]"

RESULT: Final = "return {status, output}"
"""The form that the results of parsers must have."""

USUAL_DELTA: Final = frozenset(
    {"annotations", "audio", "content", "function_call", "refusal", "role", "tool_calls"}
)
"""The standard fields of a delta; all others are extra fields."""

OUTPUT: Final = ("role", "content", "reasoning", "meta")
"""The fields of an output that are read."""

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
    response. It reports an error of the provider as ``{status: "error", output: text}``; an error that it ignores
    is reported if nothing else is found in the response.
    """

    def __init__(self, functions: Functions, request: ModelRequest) -> None:
        self._functions = functions
        self._turn = len(request.messages)
        self._calls: list[Any] = []
        self._text: list[str] = []
        self._reasoning: list[Any] = []
        self._tokens: Any = None
        self._response_id: str | None = None
        self._stop: StopReason | None = None
        self._has_content = False
        self._done = False
        self._read = 0
        self._ignored_error: Any = None

    def feed(self, event: str | None, data: str) -> list[ModelEvent]:
        if self._done:
            return []
        if data == DONE:
            return self._complete() if self._has_content else []
        events: list[ModelEvent] = []
        if event is not None:
            self._parse(f"event: {event}", events)
        if not self._parse(f"data: {data}", events):
            self._note_error(data)
        return events

    def finish(self) -> list[ModelEvent]:
        if self._done:
            return []
        self._check_content()
        return self._complete()

    def whole(self, body: JsonObject) -> list[ModelEvent]:
        data = orjson.dumps(body).decode()
        if not self._parse({"status": 200, "body": data}, []):
            self._note_error(data)
        self._check_content()
        return self._complete()

    def _check_content(self) -> None:
        if self._has_content:
            return
        if self._ignored_error is not None:
            raise failure_of_event(self._ignored_error)
        if self._read:
            raise self._functions.unusable("parse_chat", f"{RESULT} for at least one part of the response", None)
        raise ProviderProtocolError("the provider ended the stream before it sent anything")

    def _note_error(self, data: str) -> None:
        """Keep an error of the provider that ``parse_chat`` has ignored."""
        if '"error"' in data:
            body = loads_or_none(data)
            if as_object(body).get("error"):
                self._ignored_error = body

    def _parse(self, data: str | JsonObject, events: list[ModelEvent]) -> bool:
        """Run the handlers on a part of the response, and return whether it has content."""
        self._read += 1
        functions = self._functions
        result = functions.run("parse_chat", data=data, tools=self._calls)
        if result is not None:
            self._take(checked_result(functions, "parse_chat", result), events)
        elif self._calls:
            self._has_content = True
        if "parse_tokens" in functions and functions.view.features.get("tokens", True):
            self._tokens = tokens_of(functions, data) or self._tokens
        return result is not None

    def _take(self, result: JsonObject, events: list[ModelEvent]) -> None:
        if result.get("status") == "error":
            raise provider_error(as_text(result.get("output")) or "the provider reported an error")
        functions = self._functions
        if result.get("extra") and "parse_meta" in functions:
            changed = functions.run("parse_meta", data=result)
            if changed is not None:
                result = checked_result(functions, "parse_meta", changed)
        self._has_content = True
        output = result["output"]
        if isinstance(output, str):
            output = {"content": output}
        reasoning = output.get("reasoning")
        if reasoning:
            self._reasoning.append(reasoning)
            text = text_of_reasoning(reasoning)
            if text:
                events.append(ReasoningDelta(text))
        content = output.get("content")
        if content:
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
        calls = self._formatted_calls()
        for position, call in enumerate(calls):
            use = use_of(call, self._functions.view.name, f"call_{self._turn}_{position}")
            events.append(ToolCallDelta(use.id, use.name, use.arguments_json))
            blocks.append(use)
        stop = self._stop or ("tool_use" if calls else "end_turn")
        events.append(Completed(AssistantMessage(blocks), stop, usage_of(self._tokens), None, self._response_id))
        return events

    def _formatted_calls(self) -> list[JsonObject]:
        calls: Any = self._calls
        functions = self._functions
        if not calls:
            return []
        maker, wanted = "parse_chat", "append calls such as {id, function: {name, arguments}} to its tools"
        if "format_calls" in functions:
            maker, wanted = "format_calls", "return a list of calls such as {id, function: {name, arguments}}"
            calls = functions.run("format_calls", tools=calls)
        if not isinstance(calls, (list, tuple)):
            raise functions.unusable(maker, wanted, calls)
        for call in cast("list[Any]", calls):
            function = as_object(as_object(call).get("function"))
            if not (as_text(function.get("name")) or as_text(as_object(call).get("name"))):
                raise functions.unusable(maker, wanted, call)
        return cast("list[JsonObject]", calls)

    def _reasoning_block(self) -> ReasoningBlock:
        text, raw = reasoning_of(self._reasoning)
        if "build_reasoning" in self._functions and not all(isinstance(c, str) for c in self._reasoning):
            raw = self._functions.run("build_reasoning", messages=self._reasoning)
        return ReasoningBlock(text, self._functions.view.name, raw)


class InlineDecoder:
    """Decodes a response that has only text with ``parse_inline``, and its tokens with ``parse_tokens``.

    Requests ask for a whole response. Some servers stream all the same: the stream is decoded by ``streamed``, the
    decoder for chats, or by ``parse_inline`` line by line if the adapter has none.
    """

    def __init__(self, functions: Functions, request: ModelRequest, streamed: Decoder | None) -> None:
        self._functions = functions
        self._streamed = streamed
        self._context = context_of(request)
        self._text: list[str] = []
        self._tokens: Any = None

    def feed(self, event: str | None, data: str) -> list[ModelEvent]:
        if self._streamed is not None:
            return self._streamed.feed(event, data)
        if data == DONE:
            return []
        text = self._read(f"data: {data}")
        self._text += [text] if text else []
        return [TextDelta(text)] if text else []

    def finish(self) -> list[ModelEvent]:
        return self._streamed.finish() if self._streamed is not None else self._complete("the stream")

    def whole(self, body: JsonObject) -> list[ModelEvent]:
        text = self._read({"status": 200, "body": orjson.dumps(body).decode()})
        self._text += [] if text is None else [text]
        return self._complete("the answer")

    def _read(self, data: str | JsonObject) -> str | None:
        functions = self._functions
        found = functions.run("parse_inline", data=data, context=self._context)
        if "parse_tokens" in functions:
            self._tokens = tokens_of(functions, data) or self._tokens
        if found is None or isinstance(found, str):
            return found
        result = checked_result(functions, "parse_inline", found)
        output = result["output"]
        if result.get("status") == "error":
            raise provider_error(as_text(output) or "the provider reported an error")
        return output if isinstance(output, str) else as_text(output.get("content"))

    def _complete(self, what: str) -> list[ModelEvent]:
        if not self._text:
            raise self._functions.unusable(
                "parse_inline", f"return a string or {{status, output}} for {what}", None
            )
        message = AssistantMessage([TextBlock("".join(self._text))])
        return [Completed(message, "end_turn", usage_of(self._tokens))]


class MetaDecoder:
    """Adds handlers to the decoder of a wire, for extra fields of a delta and for token counts.

    ``parse_meta`` may add reasoning to a delta, and may replace its content.
    """

    def __init__(self, functions: Functions, decoder: Decoder) -> None:
        self._functions = functions
        self._decoder = decoder
        self._reasoning: list[Any] = []
        self._text: list[str] = []
        self._replaces_text = False
        self._tokens: Any = None

    def feed(self, event: str | None, data: str) -> list[ModelEvent]:
        events = self._decoder.feed(event, data)
        if data and data != DONE:
            self._count(f"data: {data}")
            if "parse_meta" in self._functions:
                events = self._with_extras(events, as_object(orjson.loads(data)), "delta")
        self._text += [event.text for event in events if isinstance(event, TextDelta)]
        return self._add_results(events)

    def finish(self) -> list[ModelEvent]:
        return self._add_results(self._decoder.finish())

    def whole(self, body: JsonObject) -> list[ModelEvent]:
        events = self._decoder.whole(body)
        self._count({"status": 200, "body": orjson.dumps(body).decode()})
        if "parse_meta" in self._functions:
            events = self._with_extras(events, body, "message")
            # The completed message has the text; deltas are made from it.
            self._text = [event.text for event in events if isinstance(event, TextDelta)]
            events = [event for event in events if isinstance(event, Completed)]
        return self._add_results(events)

    def _count(self, data: str | JsonObject) -> None:
        functions = self._functions
        if "parse_tokens" in functions and functions.view.features.get("tokens", True):
            self._tokens = tokens_of(functions, data) or self._tokens

    def _with_extras(self, events: list[ModelEvent], chunk: JsonObject, key: str) -> list[ModelEvent]:
        choices = as_list(chunk.get("choices"))
        message = as_object(as_object(choices[0]).get(key)) if choices else {}
        extra = {name: value for name, value in message.items() if name not in USUAL_DELTA and value is not None}
        if not extra:
            return events
        content = message.get("content")
        result = {"status": "success", "output": {"role": message.get("role"), "content": content}, "extra": extra}
        changed = self._functions.run("parse_meta", data=result)
        if changed is None:
            return events
        output = checked_result(self._functions, "parse_meta", changed)["output"]
        if isinstance(output, str):
            output = {"content": output}
        if isinstance(content, str) and (output.get("content") or "") != content:
            events = self._with_text(events, as_text(output.get("content")))
        reasoning = output.get("reasoning")
        if reasoning is None:
            return events
        self._reasoning.append(reasoning)
        if any(isinstance(event, ReasoningDelta) for event in events):
            # The wire's decoder has read the field already.
            return events
        text = text_of_reasoning(reasoning)
        return [ReasoningDelta(text), *events] if text else events

    def _with_text(self, events: list[ModelEvent], text: str) -> list[ModelEvent]:
        """Replace the text of a delta by the one that the handler has returned."""
        self._replaces_text = True
        rest: list[ModelEvent] = [event for event in events if not isinstance(event, TextDelta)]
        return [TextDelta(text), *rest] if text else rest

    def _add_results(self, events: list[ModelEvent]) -> list[ModelEvent]:
        if not events or not isinstance(events[-1], Completed):
            return events
        done = events[-1]
        blocks = done.message.blocks
        if self._replaces_text:
            # All of the text becomes one block, before the calls.
            rest = [block for block in blocks if not isinstance(block, TextBlock)]
            text = "".join(self._text)
            place = next((at for at, block in enumerate(rest) if not isinstance(block, ReasoningBlock)), len(rest))
            blocks[:] = [*rest[:place], *([TextBlock(text)] if text else []), *rest[place:]]
        if self._reasoning:
            text, raw = reasoning_of(self._reasoning)
            if "build_reasoning" in self._functions:
                raw = self._functions.run("build_reasoning", messages=self._reasoning)
            rest = [block for block in blocks if not isinstance(block, ReasoningBlock)]
            known = [block for block in blocks if isinstance(block, ReasoningBlock)]
            made = known[0] if known and raw is None else ReasoningBlock(text, self._functions.view.name, raw)
            blocks[:] = [made, *rest]
        if self._tokens is None:
            return events
        usage = done.usage or usage_of(self._tokens)
        return [*events[:-1], Completed(done.message, done.stop_reason, usage, done.model, done.response_id)]


# --- results of handlers ------------------------------------------------------------------------------------------


def checked_result(functions: Functions, name: str, result: Any) -> JsonObject:
    """Return the result of a parser after a check of its form.

    Raises:
        AdapterError: it is not ``{status, output}``, or a field has the wrong type.
    """
    table = as_object(result)
    if "output" not in table:
        raise functions.unusable(name, RESULT, result)
    if (status := table.get("status", "success")) not in ("success", "error"):
        raise functions.unusable(name, "return the status 'success' or 'error'", status)
    output: Any = table["output"]
    if isinstance(output, str):
        return table
    if not isinstance(output, Mapping):
        raise functions.unusable(name, "return an output that is a table such as {role, content}", output)
    fields = cast("Mapping[str, Any]", output)
    for field in fields:
        if field not in OUTPUT and (meant := misspelt(field, OUTPUT)) is not None:
            raise functions.unusable(name, f"return an output with {meant!r}, not {field!r}", output)
    if not isinstance(content := fields.get("content"), (str, NoneType)):
        raise functions.unusable(name, "return an output with a string as content", content)
    if not isinstance(reasoning := fields.get("reasoning"), (str, Mapping, NoneType)):
        raise functions.unusable(name, "return an output with {content} or a string as reasoning", reasoning)
    return table


def tokens_of(functions: Functions, data: str | JsonObject) -> Any:
    """Run ``parse_tokens`` on a part of the response and return its result, if any.

    Raises:
        AdapterError: the handler failed, or its result is neither a number nor a table of numbers.
    """
    tokens: Any = functions.run("parse_tokens", data=data)
    amounts = cast("Mapping[str, Any]", tokens).values() if isinstance(tokens, Mapping) else [tokens]
    if any(isinstance(amount, bool) or not isinstance(amount, (int, float, NoneType)) for amount in amounts):
        raise functions.unusable("parse_tokens", "return a number or {input, output} with numbers", tokens)
    return cast("Any", tokens)


def usage_of(tokens: Any) -> Usage | None:
    """Convert the result of ``parse_tokens``: a total, or ``{input, output, cached, cache_written, reasoning}``."""
    if isinstance(tokens, Mapping):
        table = as_object(dict(tokens))  # pyright: ignore[reportUnknownArgumentType]
        return Usage(
            *(int(table.get(key) or 0) for key in ("input", "output", "cached", "cache_written", "reasoning"))
        )
    # A bare total does not distinguish input from output; as input it counts against the context window.
    return Usage(input_tokens=int(tokens)) if isinstance(tokens, (int, float)) else None


def text_of_reasoning(reasoning: Any) -> str:
    """Return the text of ``output.reasoning``: a string, or the ``content`` of a table."""
    return reasoning if isinstance(reasoning, str) else as_text(as_object(reasoning).get("content"))


def context_of(request: ModelRequest) -> JsonObject:
    """Return the context of ``parse_inline``: the model, the session if any, and the texts of the request."""
    last = request.messages[-1] if request.messages else None
    blocks = last.blocks if isinstance(last, UserMessage) else []
    return {
        "model": request.model,
        "session_id": request.session_id,
        "system": request.system,
        "prompt": "\n".join(block.text for block in blocks if isinstance(block, TextBlock)),
    }


def loads_or_none(data: str) -> Any:
    """Parse JSON, or return ``None`` if it is invalid."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
