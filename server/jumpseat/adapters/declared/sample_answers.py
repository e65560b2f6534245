"""Answers of a provider, to try the handlers of an adapter on before the first request.

An answer says ``Ready.``, or calls ``get_weather`` with ``{"city": "Paris"}``. Each common format has both; a
declaration can bring answers in its own format::

    [[samples]]
    stream = 'data: {"say": "Ready."}'        # or body = {reply = "Ready."}, for answers that are not streamed
    text = "Ready."                           # what parse_chat must find; calls = ["get_weather"] likewise
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson
from msgspec import Struct

from jumpseat.adapters.declared.declaration import DeclaredSample
from jumpseat.adapters.wire import as_object
from jumpseat.agent.blocks import JsonObject

TEXT: Final = "Ready."
TOOL: Final = "get_weather"
ARGUMENTS: Final[JsonObject] = {"city": "Paris"}

Frame = tuple[str | None, str]
"""The name of a server-sent event, or ``None``, and its data."""


class Answer(Struct, frozen=True):
    """An answer: its frames, or its body if it is whole.

    ``text`` and ``calls``, the names of called tools, are what it contains; ``None`` if that is unknown.
    """

    description: str
    frames: tuple[Frame, ...] = ()
    body: JsonObject | None = None
    text: str | None = None
    calls: tuple[str, ...] | None = None


def declared_answers(samples: list[DeclaredSample]) -> list[Answer]:
    """Return the answers that a declaration brings."""
    return [_declared(number, sample) for number, sample in enumerate(samples)]


def _declared(number: int, sample: DeclaredSample) -> Answer:
    calls = None if sample.calls is None else tuple(sample.calls)
    description = f"samples[{number}]"
    if sample.stream is None:
        body: Any = orjson.loads(sample.body) if isinstance(sample.body, str) else sample.body
        return Answer(description, body=as_object(body), text=sample.text, calls=calls)
    lines = sample.stream.splitlines() if isinstance(sample.stream, str) else sample.stream
    return Answer(description, tuple(_frames(lines)), text=sample.text, calls=calls)


def _frames(lines: list[str]) -> Iterator[Frame]:
    name: str | None = None
    for line in lines:
        if line.startswith("event:"):
            name = line[6:].strip() or None
        elif line.strip() and not line.startswith(":"):
            yield name, line.removeprefix("data:").strip()
            name = None


# --- the common formats ------------------------------------------------------------------------------------------

_BY_URL: Final = (
    ("chat completions", re.compile(r"/chat/completions(\?|$)")),
    ("Responses", re.compile(r"/responses(\?|$)")),
    ("Anthropic messages", re.compile(r"/v1/messages(\?|$)")),
    ("Gemini", re.compile(r":(streamGenerateContent|generateContent)(\?|$)")),
    ("Ollama", re.compile(r"/api/chat(\?|$)")),
)

_BY_WIRE: Final[Mapping[str, str]] = {
    "ChatAdapter": "chat completions",
    "ResponsesAdapter": "Responses",
    "MessagesAdapter": "Anthropic messages",
    "GenerateContentAdapter": "Gemini",
    "OllamaChatAdapter": "Ollama",
}


def format_of(wire: Any, url: str) -> str | None:
    """Return the format of an adapter's answers: that of its wire, else the one that its URL is known for."""
    if wire is not None:
        classes = (cls.__name__ for cls in type(wire).__mro__)
        return next((_BY_WIRE[name] for name in classes if name in _BY_WIRE), None)
    return next((name for name, pattern in _BY_URL if pattern.search(url)), None)


def answers_in(name: str, *, stream: bool, usage: bool) -> list[Answer]:
    """Return an answer with text and one with a call in a format.

    With ``usage``, a stream of chat completions ends in a chunk with the tokens and without choices.
    """
    says, calls = _STREAMS[name] if stream else _WHOLE[name]
    kind = "a stream" if stream else "an answer"
    found: list[Answer] = []
    for said, content in ((True, says), (False, calls)):
        what = f"that says {TEXT!r}" if said else f"that calls {TOOL}"
        frames = tuple(_with_usage(content) if usage and name == "chat completions" else content) if stream else ()
        found.append(
            Answer(
                f"{kind} of {name} {what}",
                tuple((event, _text(data)) for event, data in frames),
                None if stream else content,
                TEXT if said else None,
                () if said else (TOOL,),
            )
        )
    return found


def _text(data: Any) -> str:
    return data if isinstance(data, str) else orjson.dumps(data).decode()


def _with_usage(frames: Any) -> Iterator[tuple[str | None, Any]]:
    *first, last = frames
    yield from first
    yield None, {"choices": [], "usage": _USAGE}
    yield last


_USAGE: Final = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}


def _chunk(delta: JsonObject, finish_reason: str | None = None, **more: Any) -> tuple[None, JsonObject]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return None, {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice], **more}


def _completion(message: JsonObject, finish_reason: str) -> JsonObject:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}
    return {"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice], "usage": _USAGE}


def _function(arguments: str) -> JsonObject:
    return {"name": TOOL, "arguments": arguments}


def _named(*events: JsonObject) -> list[Frame | tuple[str, JsonObject]]:
    return [(event["type"], event) for event in events]


def _candidate(*parts: JsonObject) -> JsonObject:
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 2, "totalTokenCount": 11}
    return {"candidates": [candidate], "usageMetadata": usage}


def _ollama(message: JsonObject) -> JsonObject:
    end = {"done": True, "done_reason": "stop", "prompt_eval_count": 9, "eval_count": 2}
    return {"model": "m", "message": {"role": "assistant", "content": "", **message}, **end}


_JSON_ARGUMENTS: Final = orjson.dumps(ARGUMENTS).decode()
_CALL: Final = {"id": "call_1", "type": "function", "function": _function(_JSON_ARGUMENTS)}
_BEGUN_CALL: Final = {"index": 0, "id": "call_1", "type": "function", "function": _function("")}

_MESSAGE_USAGE: Final = {"input_tokens": 9, "output_tokens": 2}
_MESSAGE: Final[JsonObject] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "usage": _MESSAGE_USAGE,
}
_MESSAGE_START: Final[JsonObject] = {
    "type": "message_start",
    "message": {**_MESSAGE, "content": [], "stop_reason": None},
}
_BLOCK_STOP: Final = {"type": "content_block_stop", "index": 0}
_TOOL_USE: Final = {"type": "tool_use", "id": "call_1", "name": TOOL}

_ITEM_TEXT: Final[JsonObject] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": TEXT, "annotations": []}],
}
_ITEM_CALL: Final[JsonObject] = {
    "id": "fc_1",
    "type": "function_call",
    "status": "completed",
    "call_id": "call_1",
    "name": TOOL,
    "arguments": _JSON_ARGUMENTS,
}


def _block(start: JsonObject, delta: JsonObject, stop_reason: str) -> list[Frame | tuple[str, JsonObject]]:
    return _named(
        _MESSAGE_START,
        {"type": "content_block_start", "index": 0, "content_block": start},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        _BLOCK_STOP,
        {"type": "message_delta", "delta": {"stop_reason": stop_reason}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    )


def _response(item: JsonObject) -> JsonObject:
    usage = {**_MESSAGE_USAGE, "total_tokens": 11}
    return {"id": "resp_1", "object": "response", "status": "completed", "output": [item], "usage": usage}


def _item(item: JsonObject, *deltas: JsonObject) -> list[Frame | tuple[str, JsonObject]]:
    begun: JsonObject = {**item, "status": "in_progress"}
    begun.update({"content": []} if "content" in item else {"arguments": ""})
    return _named(
        {"type": "response.created", "response": {**_response(item), "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": begun},
        *deltas,
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": _response(item)},
    )


_STREAMS: Final[Mapping[str, tuple[Any, Any]]] = {
    "chat completions": (
        [
            _chunk({"role": "assistant", "content": ""}),
            _chunk({"content": TEXT}),
            _chunk({}, "stop", usage=_USAGE),
            (None, "[DONE]"),
        ],
        [
            _chunk({"role": "assistant", "content": None, "tool_calls": [_BEGUN_CALL]}),
            _chunk({"tool_calls": [{"index": 0, "function": {"arguments": _JSON_ARGUMENTS[:6]}}]}),
            _chunk({"tool_calls": [{"index": 0, "function": {"arguments": _JSON_ARGUMENTS[6:]}}]}),
            _chunk({}, "tool_calls", usage=_USAGE),
            (None, "[DONE]"),
        ],
    ),
    "Responses": (
        _item(
            _ITEM_TEXT,
            {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "delta": TEXT},
        ),
        _item(
            _ITEM_CALL,
            {
                "type": "response.function_call_arguments.delta",
                "item_id": "fc_1",
                "output_index": 0,
                "delta": _JSON_ARGUMENTS,
            },
        ),
    ),
    "Anthropic messages": (
        _block({"type": "text", "text": ""}, {"type": "text_delta", "text": TEXT}, "end_turn"),
        _block(
            {**_TOOL_USE, "input": {}},
            {"type": "input_json_delta", "partial_json": _JSON_ARGUMENTS},
            "tool_use",
        ),
    ),
    "Gemini": (
        [(None, _candidate({"text": TEXT}))],
        [(None, _candidate({"functionCall": {"name": TOOL, "args": ARGUMENTS}}))],
    ),
    "Ollama": (
        [
            (None, {"model": "m", "message": {"role": "assistant", "content": TEXT}, "done": False}),
            (None, _ollama({})),
        ],
        [(None, _ollama({"tool_calls": [{"function": {"name": TOOL, "arguments": ARGUMENTS}}]}))],
    ),
}

_WHOLE: Final[Mapping[str, tuple[JsonObject, JsonObject]]] = {
    "chat completions": (
        _completion({"content": TEXT}, "stop"),
        _completion({"content": None, "tool_calls": [_CALL]}, "tool_calls"),
    ),
    "Responses": (_response(_ITEM_TEXT), _response(_ITEM_CALL)),
    "Anthropic messages": (
        {**_MESSAGE, "content": [{"type": "text", "text": TEXT}], "stop_reason": "end_turn"},
        {**_MESSAGE, "content": [{**_TOOL_USE, "input": ARGUMENTS}], "stop_reason": "tool_use"},
    ),
    "Gemini": (
        _candidate({"text": TEXT}),
        _candidate({"functionCall": {"name": TOOL, "args": ARGUMENTS}}),
    ),
    "Ollama": (
        _ollama({"content": TEXT}),
        _ollama({"tool_calls": [{"function": {"name": TOOL, "arguments": ARGUMENTS}}]}),
    ),
}
