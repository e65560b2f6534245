"""Streamed answers of models in the formats of eight wires, and the error that each sends inside of a stream."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

JsonObject: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """A call of a tool by a model."""

    id: str
    name: str
    arguments: JsonObject

    @property
    def halves(self) -> tuple[str, str]:
        """The arguments as JSON, in two pieces."""
        text = json.dumps(self.arguments)
        return text[: len(text) // 2], text[len(text) // 2 :]


@dataclass(frozen=True)
class Answer:
    """An answer: some thinking, some text in pieces, then calls."""

    thinking: str
    text: Sequence[str]
    calls: Sequence[Call] = ()


@dataclass(frozen=True)
class WireFormat:
    """How one wire streams: the pieces of an answer, and of an error in the middle of one."""

    adapter: str
    encode: Callable[[Answer], list[bytes]]
    overload: bytes
    content_type: str = "text/event-stream"


def _data(value: Any) -> bytes:
    return b"data: %s\n\n" % (value if isinstance(value, bytes) else json.dumps(value).encode())


def _event(value: JsonObject, key: str = "type") -> bytes:
    return b"event: %s\n" % str(value[key]).encode() + _data(value)


# --- chat completions ---------------------------------------------------------------------------------------------


def _chat(delta: JsonObject, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return _data({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]})


def _chat_calls(calls: Sequence[Call]) -> list[bytes]:
    pieces: list[bytes] = []
    for index, call in enumerate(calls):
        first, second = call.halves
        function = {"name": call.name, "arguments": first}
        pieces.append(
            _chat({"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": function}]})
        )
        pieces.append(_chat({"tool_calls": [{"index": index, "function": {"arguments": second}}]}))
    return pieces


def _chat_answer(thinking: Callable[[str], JsonObject]) -> Callable[[Answer], list[bytes]]:
    def encode(answer: Answer) -> list[bytes]:
        return [
            _chat({"role": "assistant", "content": ""}),
            _chat(thinking(answer.thinking)),
            *(_chat({"content": text}) for text in answer.text),
            *_chat_calls(answer.calls),
            _chat({}, "tool_calls" if answer.calls else "stop"),
            _data(b"[DONE]"),
        ]

    return encode


def _mistral_thinking(text: str) -> JsonObject:
    return {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": text}], "closed": True}]}


def _mistral(answer: Answer) -> list[bytes]:
    calls = [
        {"id": call.id, "function": {"name": call.name, "arguments": json.dumps(call.arguments)}, "index": index}
        for index, call in enumerate(answer.calls)
    ]
    return [
        _chat({"role": "assistant", "content": ""}),
        _chat(_mistral_thinking(answer.thinking)),
        *(_chat({"content": text}) for text in answer.text),
        _chat(
            {"content": "", "tool_calls": calls} if calls else {"content": ""}, "tool_calls" if calls else "stop"
        ),
        _data(b"[DONE]"),
    ]


# --- responses ----------------------------------------------------------------------------------------------------


def _responses(answer: Answer) -> list[bytes]:
    output: list[JsonObject] = []
    pieces: list[bytes] = []

    def response(status: str) -> JsonObject:
        return {"id": "r1", "object": "response", "created_at": 1, "status": status, "model": "m", "output": output}

    def add(kind: str, **members: Any) -> None:
        pieces.append(_event({"type": f"response.{kind}", "sequence_number": len(pieces), **members}))

    def item(value: JsonObject, start: JsonObject, *deltas: tuple[str, JsonObject]) -> None:
        index = len(output)
        add("output_item.added", output_index=index, item=start)
        for kind, members in deltas:
            add(kind, item_id=value["id"], output_index=index, **members)
        output.append(value)
        add("output_item.done", output_index=index, item=value)

    add("created", response=response("in_progress"))
    summary = [{"type": "summary_text", "text": answer.thinking}]
    item(
        {"id": "rs_1", "type": "reasoning", "summary": summary, "encrypted_content": "AAAA"},
        {"id": "rs_1", "type": "reasoning", "summary": []},
        ("reasoning_summary_text.delta", {"summary_index": 0, "delta": answer.thinking}),
    )
    if answer.text:
        content: list[JsonObject] = [{"type": "output_text", "text": "".join(answer.text)}]
        message = {"id": "m_1", "type": "message", "role": "assistant"}
        item(
            {**message, "status": "completed", "content": content},
            {**message, "status": "in_progress", "content": []},
            *(("output_text.delta", {"content_index": 0, "delta": text}) for text in answer.text),
        )
    for number, call in enumerate(answer.calls):
        value = {"id": f"fc_{number}", "type": "function_call", "call_id": call.id, "name": call.name}
        item(
            {**value, "arguments": json.dumps(call.arguments), "status": "completed"},
            {**value, "arguments": "", "status": "in_progress"},
            *(("function_call_arguments.delta", {"delta": half}) for half in call.halves),
        )
    usage = {"input_tokens": 30, "output_tokens": 9, "total_tokens": 39}
    add("completed", response={**response("completed"), "usage": usage})
    return pieces


# --- messages -----------------------------------------------------------------------------------------------------


def _messages(answer: Answer) -> list[bytes]:
    message: JsonObject = {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
    }
    usage = {"input_tokens": 25, "output_tokens": 1}
    pieces = [_event({"type": "message_start", "message": {**message, "stop_sequence": None, "usage": usage}})]
    count = 0

    def block(start: JsonObject, *deltas: JsonObject) -> None:
        nonlocal count
        pieces.append(_event({"type": "content_block_start", "index": count, "content_block": start}))
        pieces.extend(_event({"type": "content_block_delta", "index": count, "delta": delta}) for delta in deltas)
        pieces.append(_event({"type": "content_block_stop", "index": count}))
        count += 1

    block(
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": answer.thinking},
        {"type": "signature_delta", "signature": "c2ln"},
    )
    if answer.text:
        block({"type": "text", "text": ""}, *({"type": "text_delta", "text": text} for text in answer.text))
    for call in answer.calls:
        block(
            {"type": "tool_use", "id": call.id, "name": call.name, "input": {}},
            *({"type": "input_json_delta", "partial_json": half} for half in call.halves),
        )
    delta = {"stop_reason": "tool_use" if answer.calls else "end_turn", "stop_sequence": None}
    pieces.append(_event({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 9}}))
    pieces.append(_event({"type": "message_stop"}))
    return pieces


# --- Gemini -------------------------------------------------------------------------------------------------------


def _gemini(answer: Answer) -> list[bytes]:
    def chunk(*parts: JsonObject, **more: Any) -> bytes:
        candidate = {"content": {"parts": [*parts], "role": "model"}, "index": 0, **more}
        return _data({"candidates": [candidate], "modelVersion": "m", "responseId": "r"})

    calls = [
        {"functionCall": {"id": call.id, "name": call.name, "args": call.arguments}, "thoughtSignature": "EvIB"}
        for call in answer.calls
    ]
    return [
        chunk({"text": answer.thinking, "thought": True}),
        *(chunk({"text": text}) for text in answer.text),
        *(chunk(call) for call in calls),
        chunk({"text": ""}, finishReason="STOP"),
    ]


def _interactions(answer: Answer) -> list[bytes]:
    def event(kind: str, **members: Any) -> bytes:
        return _event({**members, "event_type": kind}, "event_type")

    def interaction(status: str) -> JsonObject:
        return {"id": "v1", "status": status, "object": "interaction", "model": "m"}

    pieces = [event("interaction.created", interaction=interaction("in_progress"))]
    count = 0

    def step(start: JsonObject, *deltas: JsonObject) -> None:
        nonlocal count
        pieces.append(event("step.start", index=count, step=start))
        pieces.extend(event("step.delta", index=count, delta=delta) for delta in deltas)
        pieces.append(event("step.stop", index=count))
        count += 1

    step(
        {"type": "thought"},
        {"type": "thought_summary", "content": {"type": "text", "text": answer.thinking}},
        {"type": "thought_signature", "signature": "EvIB"},
    )
    if answer.text:
        step({"type": "model_output"}, *({"type": "text", "text": text} for text in answer.text))
    for call in answer.calls:
        step(
            {"type": "function_call", "id": call.id, "name": call.name, "arguments": {}},
            *({"type": "arguments_delta", "arguments": half} for half in call.halves),
        )
    pieces.append(
        event("interaction.completed", interaction=interaction("requires_action" if answer.calls else "completed"))
    )
    pieces.append(b"event: done\ndata: [DONE]\n\n")
    return pieces


# --- Ollama -------------------------------------------------------------------------------------------------------


def _ollama(answer: Answer) -> list[bytes]:
    def line(message: JsonObject, **more: Any) -> bytes:
        value = {"model": "m", "created_at": "2026-03-01T10:00:00Z", "message": {"role": "assistant", **message}}
        return json.dumps({**value, "done": False, **more}).encode() + b"\n"

    calls = [{"function": {"name": call.name, "arguments": call.arguments}} for call in answer.calls]
    return [
        line({"content": "", "thinking": answer.thinking}),
        *(line({"content": text}) for text in answer.text),
        *(line({"content": "", "tool_calls": [call]}) for call in calls),
        line({"content": ""}, done=True, done_reason="stop", prompt_eval_count=26, eval_count=8),
    ]


_CHAT_OVERLOAD: Final = _data({"error": {"message": "overloaded", "type": "server_error", "code": 503}})

WIRES: Final[Mapping[str, WireFormat]] = {
    wire.adapter: wire
    for wire in (
        WireFormat("openai_compatible", _chat_answer(lambda text: {"reasoning_content": text}), _CHAT_OVERLOAD),
        WireFormat("openrouter", _chat_answer(lambda text: {"reasoning": text}), _CHAT_OVERLOAD),
        WireFormat(
            "mistral",
            _mistral,
            _data({"object": "error", "message": "Capacity exceeded", "type": "capacity_exceeded", "code": "3505"}),
        ),
        WireFormat(
            "openai_responses",
            _responses,
            _event({"type": "error", "code": "server_is_overloaded", "message": "Overloaded", "param": None}),
        ),
        WireFormat(
            "anthropic",
            _messages,
            _event({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
        ),
        WireFormat(
            "gemini", _gemini, _data({"error": {"code": 503, "message": "Overloaded.", "status": "UNAVAILABLE"}})
        ),
        WireFormat(
            "gemini_interactions",
            _interactions,
            _event({"error": {"code": "internal", "message": "An error."}, "event_type": "error"}, "event_type"),
        ),
        WireFormat("ollama", _ollama, b'{"error":"an error was encountered"}\n', "application/x-ndjson"),
    )
}
"""The formats by the name of the adapter."""
